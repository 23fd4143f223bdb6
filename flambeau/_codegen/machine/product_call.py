"""A product of matrices by a library's function with the interface of BLAS, called without Python."""

from __future__ import annotations

from ..arrays import Arguments, without_lock
from ..build import Builder, Value
from ..elements.join import BYTES
from ..kernel import kernel
from ..shares import steps_worth
from ..types import F32, I32, I64, POINTER, SCALARS, VOID
from .prepared_call import called

FLOAT32 = SCALARS["float32"]


@kernel
def product_call(b: Builder, arguments: Arguments, adds: bool) -> None:
    """(result, left, right, table, addend) of float32. `adds`: the addend is a row that every row of the result gets.

    The table: the address of the function, the exception to raise where that returns other than 0, for each factor the
    letter that says whether it lies by columns, rows, columns and summed length, and the steps of the three matrices.
    """
    out, left, right, table = (arguments.array(number).data for number in range(4))
    addend = arguments.array(4).data if adds else None
    function, error, *numbers = (b.load_raw(b.offset(table, at, I64), I64) for at in range(10))
    turns_left, turns_right, rows, columns, length, left_step, right_step, out_step = numbers
    one, kept = b.constant(F32, 1.0), b.constant(F32, 1.0 if adds else 0.0)
    status = b.variable(I32, 0)
    with without_lock(b):
        if addend is not None:
            _repeat_row(b, out, out_step * FLOAT32.size, rows, addend, columns * FLOAT32.size)
        letters = [b.convert(each, I32) for each in (turns_left, turns_right)]
        given = [*letters, rows, columns, length, one, left, left_step, right, right_step, kept, out, out_step]
        status.value = called(b, function, I32, given)
    with b.when(status.value != 0, likely=False):
        b.call("PyErr_SetNone", VOID, [Value(b, b.ir.inttoptr(error.ir, POINTER))])
        b.give_back(b.constant(POINTER, 0))


def _repeat_row(b: Builder, out: Value, step: Value, rows: Value, row: Value, length: Value) -> None:
    """Make every row of `out` a copy of `row`, of `length` bytes, with all threads.

    One thread alone takes longer for it than sixteen for a product whose sums are short.
    """
    with b.parallel(rows, steps_worth(b, length, BYTES), out, step, row, length) as (c, begin, end, inside):
        out_, step_, row_, length_ = inside
        with c.loop(begin, end) as number:
            c.call("memcpy", POINTER, [out_ + number * step_, row_, length_])
