"""A call of a library whose objects hold the addresses of arrays: these are stored, then one function is called.

The table is an array of 64-bit integers: a function `execute(work, stream, count, arguments)` and one `store(memory,
address)`, both of which return 0 if all went well; the three addresses that `execute` is given; the exception to raise
where that returns something else; how many arrays there are, and for each the object that is to hold its address.
"""

from __future__ import annotations

from ..arrays import Arguments, without_lock
from ..build import Builder, Value
from ..ir import ir
from ..kernel import kernel
from ..types import I32, I64, POINTER, VOID

EXECUTE, STORE, WORK, STREAM, ARGUMENTS, ERROR, COUNT, MEMORY = range(8)
"""The positions in the table."""

_FIRST_ARRAY = 2


@kernel
def prepared_call(b: Builder, arguments: Arguments) -> None:
    """(table, what is to be kept alive, arrays...)."""
    table = arguments.array(0).data
    execute, store, work, stream, given, error, count = (_entry(b, table, at) for at in range(MEMORY))
    with b.loop(0, count) as number:
        data = arguments.array(number + _FIRST_ARRAY).data
        called(b, store, I32, [_pointer(b, _entry(b, table, number + MEMORY)), data])
    status = b.variable(I32, 0)
    with without_lock(b):
        parts = [_pointer(b, work), _pointer(b, stream), b.convert(count, I32), _pointer(b, given)]
        status.value = called(b, execute, I32, parts)
    with b.when(status.value != 0, likely=False):
        b.call("PyErr_SetNone", VOID, [_pointer(b, error)])
        b.give_back(b.constant(POINTER, 0))


def _entry(b: Builder, table: Value, position: Value | int) -> Value:
    return b.load_raw(b.offset(table, position, I64), I64)


def _pointer(b: Builder, address: Value) -> Value:
    return Value(b, b.ir.inttoptr(address.ir, POINTER))


def called(b: Builder, function: Value, returns: ir.Type, arguments: list[Value]) -> Value:
    """What the C function at an address returns."""
    signature = ir.FunctionType(returns, [each.type for each in arguments])
    pointer = b.ir.inttoptr(function.ir, signature.as_pointer())
    return Value(b, b.ir.call(pointer, [each.ir for each in arguments]))
