"""A list of calls that are made one after the other without Python between them.

The table is an array of 64-bit integers: the address of a flag that tells whether it is in use, six counts, then the
entries that these count.

- Conditions `(function, number)`: C functions without arguments, and the 32-bit integers that they have to return.
- Arguments `(low, high)`: between how many bytes from its beginning the elements of each array are.
- Changes: which arguments are written though they were there before. No other argument may share memory with one.
- Windows `(argument, header, offset, rest)`: before the calls, the array at the address `header` is made to begin
  `offset` bytes behind the beginning of an array that is among the arguments; after them at the address `rest` again,
  so that it never points to memory that is gone.
- Calls `(function, arguments, options)`: three Python objects, a callable, a tuple, and a dictionary or nothing.
- Refusals: the addresses of arrays of one number of 64 bits each, which has to be zero after the calls.

Lists with the same flag have the same memory, so only one thread can run one of them at a time: one that finds the flag
set leaves again. So does one that finds a condition not met, or is given something else than arrays, before anything
has been done.
"""

from __future__ import annotations

from ..arrays import DATA, Arguments
from ..build import Builder, Value
from ..ir import ir
from ..kernel import kernel
from ..types import I32, I64, POINTER, VOID
from .prepared_call import called

IN_USE, CONDITIONS, ARGUMENTS, CHANGES, WINDOWS, CALLS, REFUSALS, ENTRIES = range(8)
"""The positions in the table."""

_FIRST_ARRAY = 3

_WINDOW = 4
"""Numbers in the entry of a window."""


@kernel
def replay(b: Builder, arguments: Arguments) -> None:
    """(table, what to return if it was done, what if it was not, arrays...)."""
    table, done, refused = arguments.array(0).data, arguments.object(1), arguments.object(2)
    counts = [b.load_raw(b.offset(table, at, I64), I64) for at in range(CONDITIONS, ENTRIES)]
    conditions, extents, changes, windows, calls, refusals = counts
    entry = b.variable(POINTER, b.offset(table, ENTRIES, I64))
    with b.loop(0, conditions):
        place = entry.value
        function, number = (b.load_raw(b.offset(place, at, I64), I64) for at in (0, 1))
        with b.when(b.convert(called(b, function, I32, []), I64) != number, likely=False):
            _leave(b, refused)
        entry.value = b.offset(place, 2, I64)
    kind = _type_of(b, arguments.object(0))
    with b.loop(_FIRST_ARRAY, arguments.count) as number, b.when(_type_of(b, arguments.object(number)) != kind):
        _leave(b, refused)
    bounds = entry.value
    entry.value = b.offset(bounds, extents * 2, I64)
    with b.loop(0, changes):
        changed = b.load_raw(entry.value, I64)
        low, high = _extent(b, arguments, bounds, changed)
        with b.loop(0, extents) as number, b.when(number != changed):
            other_low, other_high = _extent(b, arguments, bounds, number)
            with b.when((low < other_high) & (other_low < high), likely=False):
                _leave(b, refused)
        entry.value = b.offset(entry.value, 1, I64)
    with b.when(~_taken(b, table)):
        _leave(b, refused)
    first_window = entry.value
    with b.loop(0, windows):
        place = entry.value
        argument = b.load_raw(place, I64)
        header, offset = (b.load_raw(b.offset(place, at, I64), I64) for at in (1, 2))
        data = arguments.array(argument + _FIRST_ARRAY).data
        b.store_raw(data + offset, _pointer(b, header) + DATA)
        entry.value = b.offset(place, _WINDOW, I64)
    with b.loop(0, calls):
        place = entry.value
        call = [b.load_raw(b.offset(place, at, I64), POINTER) for at in range(3)]
        result = b.call("PyObject_Call", POINTER, call)
        with b.when(result == b.constant(POINTER, 0), likely=False):
            _rest(b, first_window, windows)
            _release(b, table)
            b.give_back(b.constant(POINTER, 0))
        b.call("Py_DecRef", VOID, [result])
        entry.value = b.offset(place, 3, I64)
    bad = b.variable(I64, 0)
    with b.loop(0, refusals):
        place = entry.value
        header = _pointer(b, b.load_raw(place, I64))
        number = b.load_raw(b.load_raw(header + DATA, POINTER), I64)
        with b.when(number != 0):
            bad.value = 1
        entry.value = b.offset(place, 1, I64)
    _rest(b, first_window, windows)
    _release(b, table)
    with b.when(bad.value != 0, likely=False):
        _leave(b, refused)
    _leave(b, done)
    b.ir.position_at_end(b.ir.append_basic_block("never"))  # what every kernel ends with is written there


def _extent(b: Builder, arguments: Arguments, bounds: Value, number: Value) -> tuple[Value, Value]:
    """The addresses between which the elements of an argument are."""
    data = b.load_raw(arguments.object(number + _FIRST_ARRAY) + DATA, I64)
    low, high = (b.load_raw(b.offset(bounds, number * 2 + at, I64), I64) for at in (0, 1))
    return data + low, data + high


def _rest(b: Builder, first: Value, windows: Value) -> None:
    """Let the arrays of windows point to memory that stays."""
    with b.loop(0, windows) as number:
        place = b.offset(first, number * _WINDOW, I64)
        header, rest = (b.load_raw(b.offset(place, at, I64), I64) for at in (1, 3))
        b.store_raw(rest, _pointer(b, header) + DATA)


def _type_of(b: Builder, object_: Value) -> Value:
    """The address of an object's class: the last field of its header."""
    return b.load_raw(object_ + (DATA - 8), I64)


def _pointer(b: Builder, address: Value) -> Value:
    return Value(b, b.ir.inttoptr(address.ir, POINTER))


def _flag(b: Builder, table: Value) -> ir.Value:
    # llvmlite insists on knowing what an atomic variable is: that the address is a number tells it.
    return b.ir.inttoptr(b.load_raw(b.offset(table, IN_USE, I64), I64).ir, I64.as_pointer())


def _taken(b: Builder, table: Value) -> Value:
    attempt = b.ir.cmpxchg(_flag(b, table), ir.Constant(I64, 0), ir.Constant(I64, 1), "seq_cst", "seq_cst")
    return Value(b, b.ir.extract_value(attempt, 1), False)


def _release(b: Builder, table: Value) -> None:
    b.ir.store_atomic(ir.Constant(I64, 0), _flag(b, table), "seq_cst", 8)


def _leave(b: Builder, result: Value) -> None:
    b.call("Py_IncRef", VOID, [result])
    b.give_back(result)
