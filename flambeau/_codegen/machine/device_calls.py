"""Calls that give work to a device: of functions of its libraries, by address, without ctypes.

To turn a dozen of Python's numbers into those of C takes as long there as the library needs for the rest. What does not
change from call to call stands in a table of 64-bit integers, of which the first two are the address of the function,
and that of the exception to raise, with the number that it returns, where this is not 0.
"""

from __future__ import annotations

from ..arrays import Arguments, without_lock
from ..build import Builder, Value
from ..kernel import kernel
from ..types import I32, I64, POINTER, VOID
from .prepared_call import called

BETA = 16
"""How far the second factor of a product is from the first: as far as the largest type is wide."""
_CONTENT = bytes.__basicsize__ - 1
"""How far the content of a `bytes` object is from its beginning."""


@kernel
def device_launch(b: Builder, arguments: Arguments) -> None:
    """(table, blocks, threads, fields, stream): start a kernel that is told `fields`, a `bytes` object.

    The table ends with the kernel. The function copies the fields before it returns.
    """
    table = arguments.array(0).data
    blocks, threads = (b.convert(arguments.integer(number), I32) for number in (1, 2))
    parameters = b.stack(I64, 1)
    b.store_raw(arguments.object(3) + _CONTENT, parameters)
    stream = arguments.integer(4)
    function, error, device_function = _entries(b, table, 3)
    one, none = b.constant(I32, 1), b.constant(I32, 0)
    given = [device_function, blocks, one, one, threads, one, one, none, stream, parameters, b.constant(I64, 0)]
    _call(b, function, error, given)


@kernel
def device_product(b: Builder, arguments: Arguments) -> None:
    """(table, result, left, right, workspace, stream), all but the table addresses: a product of matrices.

    The table goes on with the library's handle, the operation, the address of both factors, the layouts of left, right
    and result, the way to compute it, and the size of the workspace.
    """
    table = arguments.array(0).data
    result, left, right, workspace, stream = (arguments.integer(number) for number in range(1, 6))
    function, error, handle, operation, factors, of_left, of_right, of_result, way, room = _entries(b, table, 10)
    # The library counts columns first: it is given the transposed problem.
    given = [
        handle, operation, factors, right, of_right, left, of_left, factors + BETA, result, of_result, result,
        of_result, way, workspace, room, stream,
    ]  # fmt: skip
    _call(b, function, error, given)


def _entries(b: Builder, table: Value, count: int) -> list[Value]:
    return [b.load_raw(b.offset(table, at, I64), I64) for at in range(count)]


def _call(b: Builder, function: Value, error: Value, given: list[Value]) -> None:
    status = b.variable(I32, 0)
    with without_lock(b):
        status.value = called(b, function, I32, given)
    with b.when(status.value != 0, likely=False):
        number = b.call("PyLong_FromLong", POINTER, [b.convert(status.value, I64)])
        b.call("PyErr_SetObject", VOID, [Value(b, b.ir.inttoptr(error.ir, POINTER)), number])
        b.call("Py_DecRef", VOID, [number])
        b.give_back(b.constant(POINTER, 0))
