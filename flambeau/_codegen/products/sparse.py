"""The product of a sparse matrix, given by the coordinates of its elements, with a dense one."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder
from ..kernel import kernel
from ..shares import steps_worth
from ..types import I64, SCALARS

_COLUMNS = 32
"""One thread computes at least so many neighbours of the result's rows."""


@kernel
def add_sparse_product(b: Builder, arguments: Arguments, dtype: str, index: str) -> None:
    """(out, rows, columns, values, dense, step): out[row] += value * dense[column], element after element.

    `out` has no gaps, `dense` has `step` elements from one row to the next. The elements may be in any order: what
    meets in one row is added in it, by one thread.
    """
    scalar, kind = SCALARS[dtype], SCALARS[index]
    out, rows, columns, values, dense = (arguments.array(number) for number in range(5))
    width, count, step = out.size(1), values.size(0), arguments.integer(5)
    blocks = b.larger(width // _COLUMNS, 1)
    grain = steps_worth(b, count * width // b.larger(blocks, 1))
    captured = (*(each.data for each in (out, rows, columns, values, dense)), width, count, step, blocks)
    with b.parallel(blocks, grain, *captured, unlock=True) as (c, begin, end, inside):
        out_, rows_, columns_, values_, dense_, width_, count_, step_, blocks_ = inside
        first, last = begin * _COLUMNS, c.select(end == blocks_, width_, end * _COLUMNS)
        with c.loop(0, count_) as number:
            row, column = (c.convert(c.load(each, kind, number), I64) for each in (rows_, columns_))
            into, line = c.at(out_, scalar, row * width_), c.at(dense_, scalar, column * step_)
            value = c.load(values_, scalar, number)
            for place, lanes in c.lanes(first, last, 64 // scalar.size):
                total = c.fma(c.load(line, scalar, place, lanes), value, c.load(into, scalar, place, lanes))
                c.store(into, scalar, place, total)
