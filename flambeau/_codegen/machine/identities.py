"""Whether Python's objects are still the ones that they were: a list of comparisons, made without Python.

The table is an array of 64-bit integers, four for each fact: its kind, and addresses or numbers.

- `ITEM_IS` (dictionary, key, object): that is what stands under the key.
- `ITEM_IS_EMPTY` (dictionary, key, class): under it stands an object of just this class, without items. Objects of such
  classes have the number of their items behind their headers.
- `ABSENT` (dictionary, key): nothing stands under it.
- `KEYS_ARE` (dictionary, how many, array of addresses): these objects are its keys, in this order.
- `COUNT_IS` (dictionary, how many).
- `CLASS_IS` (object, class).
- `ATTRIBUTES_ARE` (object, dictionary): that is where the object has its attributes.

Keys are texts, and dictionaries have no other keys: so no code of the user's runs.
"""

from __future__ import annotations

from ..arrays import DATA, Arguments
from ..build import Builder, Value, Variable
from ..kernel import kernel
from ..types import I32, I64, POINTER, VOID

ITEM_IS, ITEM_IS_EMPTY, ABSENT, KEYS_ARE, COUNT_IS, CLASS_IS, ATTRIBUTES_ARE = range(7)

_WIDTH = 4
_CLASS, _COUNT = DATA - 8, DATA
"""Where objects have their class, and containers the number of their items."""


@kernel
def all_hold(b: Builder, arguments: Arguments) -> None:
    """(table, what to return if all facts hold, what if not, how many there are)."""
    table, yes, no = arguments.array(0).data, arguments.object(1), arguments.object(2)
    with b.loop(0, arguments.integer(3)) as number:
        row = b.offset(table, number * _WIDTH, I64)
        kind, *parts = (b.load_raw(b.offset(row, at, I64), I64) for at in range(_WIDTH))
        holds = b.variable(I64, 0)
        _look(b, kind, parts, holds)
        with b.when(holds.value == 0, likely=False):
            b.call("PyErr_Clear", VOID, [])
            _answer(b, no)
    _answer(b, yes)
    b.ir.position_at_end(b.ir.append_basic_block("never"))  # what every kernel ends with is written there


def _look(b: Builder, kind: Value, parts: list[Value], holds: Variable) -> None:
    """Find out about one fact."""
    first, second, third = parts
    with b.when(kind <= ABSENT):
        item = b.call("PyDict_GetItemWithError", POINTER, [_pointer(b, first), _pointer(b, second)])
        found = Value(b, b.ir.ptrtoint(item.ir, I64))
        with b.when(kind == ITEM_IS):
            holds.value = b.convert(found == third, I64, False)
        with b.when(kind == ABSENT):
            holds.value = b.convert(found == 0, I64, False)
        with b.when((kind == ITEM_IS_EMPTY) & (found != 0)):
            is_empty = (_field(b, item, _CLASS) == third) & (_field(b, item, _COUNT) == 0)
            holds.value = b.convert(is_empty, I64, False)
    with b.when((kind == COUNT_IS) | (kind == KEYS_ARE)):
        holds.value = b.convert(_field(b, _pointer(b, first), _COUNT) == second, I64, False)
    with b.when((kind == KEYS_ARE) & (holds.value != 0)):
        holds.value = b.convert(_has_keys(b, first, second, third), I64, False)
    with b.when(kind == CLASS_IS):
        holds.value = b.convert(_field(b, _pointer(b, first), _CLASS) == second, I64, False)
    with b.when(kind == ATTRIBUTES_ARE):
        own = b.call("PyObject_GenericGetDict", POINTER, [_pointer(b, first), b.constant(POINTER, 0)])
        holds.value = b.convert(own == _pointer(b, second), I64, False)
        with b.when(own != b.constant(POINTER, 0)):
            b.call("Py_DecRef", VOID, [own])


def _has_keys(b: Builder, dictionary: Value, count: Value, keys: Value) -> Value:
    """Whether a dictionary of so many items has these keys, in this order."""
    position, key = b.stack(I64, 1), b.stack(I64, 1)
    b.store_raw(0, position, I64)
    same = b.variable(I64, 1)
    with b.loop(0, count) as number:
        b.call("PyDict_Next", I32, [_pointer(b, dictionary), position, key, b.constant(POINTER, 0)])
        with b.when(b.load_raw(key, I64) != b.load_raw(b.offset(_pointer(b, keys), number, I64), I64)):
            same.value = 0
    return same.value != 0


def _field(b: Builder, object_: Value, offset: int) -> Value:
    return b.load_raw(object_ + offset, I64)


def _pointer(b: Builder, address: Value) -> Value:
    return Value(b, b.ir.inttoptr(address.ir, POINTER))


def _answer(b: Builder, result: Value) -> None:
    b.call("Py_IncRef", VOID, [result])
    b.give_back(result)
