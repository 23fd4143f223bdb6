"""Products of matrices in which each element is one chain of multiplications and additions, in the order of its sum.

No element depends on how many rows and columns there are, on its place among them, or on the number of threads; and
zeros at the end of a sum change nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from ..arrays import Arguments
from ..build import Builder, Value, Variable
from ..kernel import kernel
from ..rows.shared import load_lanes
from ..shares import MULTIPLICATIONS, steps_worth
from ..types import I64, SCALARS
from .gemm import Fields, transposed
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


# ----- few rows and a matrix whose columns are rows of memory ---------------------------------------------------------

FEW = 16
"""More rows than these are better multiplied with a turned copy of the matrix."""
_TOGETHER = (8, 4, 2, 1)


@kernel
def few_rows_of_turned(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, x, weight, row step of x, row step of weight): out[m, n] = sum over k of x[m, k] * weight[n, k].

    Elements of rows are neighbours; `out` has no gaps. Blocks of the weight are turned in registers.
    """
    scalar = SCALARS[dtype]
    width = 64 // scalar.size
    out, x, weight = (arguments.array(number) for number in range(3))
    x_row, weight_row = arguments.integer(3), arguments.integer(4)
    rows, depth, columns = x.size(0), x.size(1), weight.size(0)
    blocks = (columns + (width - 1)) // width
    grain = steps_worth(b, rows * depth * width, MULTIPLICATIONS)
    captured = out.data, x.data, weight.data, x_row, weight_row, rows, depth, columns
    with b.parallel(blocks, grain, *captured, unlock=True) as (c, begin, end, inside):
        out_, x_, weight_, x_row_, weight_row_, rows_, depth_, columns_ = inside
        with c.loop(begin, end) as block:
            first = block * width
            lines = c.at(weight_, scalar, first * weight_row_)
            position = c.variable(I64, 0)
            for together in _TOGETHER:
                whole = position.value + (rows_ - position.value) // together * together
                with c.loop(position.value, whole, together) as row:
                    factors = [c.at(x_, scalar, (row + number) * x_row_) for number in range(together)]
                    places = [c.at(out_, scalar, (row + number) * columns_ + first) for number in range(together)]
                    with c.either(first + width <= columns_) as (is_whole, is_rest):
                        with is_whole:
                            sums = [c.variable(scalar.compute, 0.0, width) for _ in range(together)]
                            even = depth_ // width * width
                            with c.loop(0, even, width) as k:
                                loaded = [c.load(lines, scalar, weight_row_ * lane + k, width) for lane in range(width)]
                                for step, column in enumerate(transposed(c, loaded)):
                                    _add(c, sums, [c.load(each, scalar, k + step) for each in factors], column)
                            with c.loop(even, depth_) as k:
                                column = load_lanes(c, lines, scalar, k, width, weight_row_)
                                _add(c, sums, [c.load(each, scalar, k) for each in factors], column)
                            for place, total in zip(places, sums, strict=True):
                                c.store(place, scalar, 0, total.value)
                        with is_rest, c.loop(0, columns_ - first) as column:
                            line = c.at(lines, scalar, column * weight_row_)
                            sums = [c.variable(scalar.compute, 0.0) for _ in range(together)]
                            with c.loop(0, depth_) as k:
                                _add(c, sums, [c.load(each, scalar, k) for each in factors], c.load(line, scalar, k))
                            for place, total in zip(places, sums, strict=True):
                                c.store(place, scalar, column, total.value)
                position.value = whole


def _add(c: Builder, sums: list[Variable], factors: list[Value], column: Value) -> None:
    for total, factor in zip(sums, factors, strict=True):
        total.value = c.fma(c.splat(factor, column.lanes), column, total.value)
