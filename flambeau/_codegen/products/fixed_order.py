"""Products of matrices in which each element is one chain of multiplications and additions, in the order of its sum.

No element depends on how many rows and columns there are, on its place among them, or on the number of threads; and
zeros at the end of a sum change nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from ..arrays import Arguments
from ..build import Builder
from ..kernel import kernel
from ..shares import MULTIPLICATIONS, steps_worth
from ..types import SCALARS
from .gemm import Fields
from .tile import Product

ROWS, COLUMNS = 64, 128
"""The part of a result that a thread computes at a time."""


class Sizes(NamedTuple):
    """What the kernel needs to know, in elements; it reads it from an array of integers in this order."""

    matrices: int
    rows: int
    columns: int
    depth: int
    left_row: int
    left_column: int
    left_matrix: int
    right_row: int  # the elements of a row are neighbours
    right_matrix: int
    row_blocks: int
    column_blocks: int


@kernel
def fixed_order_product(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, left, right, sizes): out[i] = left[i] @ right[i]; `out` has no gaps."""
    scalar = SCALARS[dtype]
    multiply = Product(b, scalar)
    pointers = [arguments.array(number).data for number in range(4)]
    sizes = Fields(b, pointers[3], Sizes)
    units = sizes.matrices * sizes.row_blocks * sizes.column_blocks
    work = b.smaller(sizes.rows, ROWS) * b.smaller(sizes.columns, COLUMNS) * sizes.depth
    grain = steps_worth(b, work, MULTIPLICATIONS)
    with b.parallel(units, grain, *pointers, unlock=True) as (c, begin, end, (out, left, right, table)):
        inside = Fields(c, table, Sizes)
        with c.loop(begin, end) as unit:
            row = unit % inside.row_blocks * ROWS
            rest = unit // inside.row_blocks
            column, matrix = rest % inside.column_blocks * COLUMNS, rest // inside.column_blocks
            rows = c.smaller(inside.rows - row, ROWS)
            columns = c.smaller(inside.columns - column, COLUMNS)
            multiply(
                c,
                (rows, columns, inside.depth),
                (
                    c.at(left, scalar, matrix * inside.left_matrix + row * inside.left_row),
                    inside.left_row,
                    inside.left_column,
                ),
                (c.at(right, scalar, matrix * inside.right_matrix + column), inside.right_row),
                (
                    c.at(out, scalar, (matrix * inside.rows + row) * inside.columns + column),
                    inside.columns,
                ),
                0,
            )
