"""Whether Python's objects are still the ones that they were: a list of comparisons, made without Python.

A table is an array of 64-bit integers, five for each fact: its kind, then addresses or numbers.

- `ITEM_IS` (dictionary, key, object): that is what stands under the key.
- `ITEM_IS_EMPTY` (dictionary, key, class, container): under it stands an object of just this class, without items.
  Objects of such classes have the number of their items behind their headers. The last one found is noted.
- `ABSENT` (dictionary, key): nothing stands under it.
- `KEYS_ARE` (dictionary, how many, array of addresses): these objects are its keys, in this order.
- `COUNT_IS` (dictionary, how many).
- `CLASS_IS` (object, class).
- `ATTRIBUTES_ARE` (object, dictionary): that is where the object has its attributes.
- `FIELD_IS` (object, offset, address): that is in the object's own memory, as the code of a function is.

Keys are texts or classes, and dictionaries have no other keys: so no code of the user's runs.

Most facts are about dictionaries that nobody has changed. Up to Python 3.12 a dictionary has a version, a number that
no other state of any dictionary has. So facts about one dictionary stand together, behind the version that it had when
they held last: while it has that one, they hold, but for containers in it that were empty.
"""

from __future__ import annotations

from ..arrays import DATA, Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..types import I32, I64, POINTER, VOID

ITEM_IS, ITEM_IS_EMPTY, ABSENT, KEYS_ARE, COUNT_IS, CLASS_IS, ATTRIBUTES_ARE, FIELD_IS = range(8)

FACT, DICTIONARY = 5, 5
"""How many integers a fact has, and a dictionary: its address, its version, where its facts begin, where those that it
has empty containers begin, and where they end."""
_CLASS, _COUNT, _VERSION = DATA - 8, DATA, DATA + 8
"""Where objects have their class, containers the number of their items, and dictionaries their version."""


@kernel
def all_hold(b: Builder, arguments: Arguments, has_versions: bool) -> None:
    """(facts, what to return if all hold, what if not, how many are about objects, dictionaries, how many they are)."""
    facts, yes, no = arguments.array(0).data, arguments.object(1), arguments.object(2)
    dictionaries = arguments.array(4).data
    with b.loop(0, arguments.integer(3)) as number:
        _wanted(b, _about_object(b, _numbers(b, facts, number, FACT)), no)
    with b.loop(0, arguments.integer(5)) as number:
        dictionary, known, begin, empty, end = _numbers(b, dictionaries, number, DICTIONARY)
        if has_versions:
            version = _field(b, _pointer(b, dictionary), _VERSION)
            with b.either(version == known) as (is_as_before, is_changed):
                with is_as_before, b.loop(empty, end) as at:
                    container = b.load_raw(b.offset(facts, at * FACT + 4, I64), I64)
                    _wanted(b, _field(b, _pointer(b, container), _COUNT) == 0, no)
                with is_changed:
                    with b.loop(begin, end) as at:
                        _wanted(b, _about_item(b, facts, at), no)
                    b.store_raw(version, b.offset(dictionaries, number * DICTIONARY + 1, I64))
        else:
            with b.loop(begin, end) as at:
                _wanted(b, _about_item(b, facts, at), no)
    _answer(b, yes)
    b.ir.position_at_end(b.ir.append_basic_block("never"))  # what every kernel ends with is written there


def _numbers(b: Builder, table: Value, row: Value, width: int) -> list[Value]:
    """The integers in a row of a table."""
    first = b.offset(table, row * width, I64)
    return [b.load_raw(b.offset(first, at, I64), I64) for at in range(width)]


def _wanted(b: Builder, holds: Value, no: Value) -> None:
    """Return `no` if a fact does not hold."""
    with b.when(~holds, likely=False):
        b.call("PyErr_Clear", VOID, [])
        _answer(b, no)


def _about_object(b: Builder, row: list[Value]) -> Value:
    """Whether a fact about an object holds."""
    kind, first, second, third, _ = row
    holds = b.variable(I64, 0)
    with b.when(kind == FIELD_IS):
        holds.value = b.convert(_field(b, _pointer(b, first), second) == third, I64, False)
    with b.when(kind == CLASS_IS):
        holds.value = b.convert(_field(b, _pointer(b, first), _CLASS) == second, I64, False)
    with b.when(kind == ATTRIBUTES_ARE):
        own = b.call("PyObject_GenericGetDict", POINTER, [_pointer(b, first), b.constant(POINTER, 0)])
        holds.value = b.convert(own == _pointer(b, second), I64, False)
        with b.when(own != b.constant(POINTER, 0)):
            b.call("Py_DecRef", VOID, [own])
    return holds.value != 0


def _about_item(b: Builder, facts: Value, row: Value) -> Value:
    """Whether a fact about a dictionary holds."""
    kind, first, second, third, _ = _numbers(b, facts, row, FACT)
    holds = b.variable(I64, 0)
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
            b.store_raw(found, b.offset(facts, row * FACT + 4, I64))
    with b.when((kind == COUNT_IS) | (kind == KEYS_ARE)):
        holds.value = b.convert(_field(b, _pointer(b, first), _COUNT) == second, I64, False)
    with b.when((kind == KEYS_ARE) & (holds.value != 0)):
        holds.value = b.convert(_has_keys(b, first, second, third), I64, False)
    return holds.value != 0


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


def _field(b: Builder, object_: Value, offset: Value | int) -> Value:
    return b.load_raw(object_ + offset, I64)


def _pointer(b: Builder, address: Value) -> Value:
    return Value(b, b.ir.inttoptr(address.ir, POINTER))


def _answer(b: Builder, result: Value) -> None:
    b.call("Py_IncRef", VOID, [result])
    b.give_back(result)
