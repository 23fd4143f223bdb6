"""Sums over samples of products of their rows, as a tree: what the samples of a process give is a subtree of it.

The samples are halved again and again, the first half being the smaller one, and sums of halves are added. Where n
samples are shared out to 2 or 4 processes in equal, contiguous parts, the sum of each is a node of the tree over all.
"""

from __future__ import annotations

from typing import NamedTuple

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..rows.shared import scratch
from ..shares import MULTIPLICATIONS, steps_worth
from ..types import I64, SCALARS, Scalar
from .gemm import Fields, integer_at
from .tile import Product

ROWS, COLUMNS = 64, 64
"""The part of a result that a thread computes at a time."""
_TILE = ROWS * COLUMNS
PANEL_ROWS, PANEL_COLUMNS = 8, 32
"""Matrices of several steps come in panels: for each sample so many columns after another, step by step. Of what a
processor multiplies at a time, a panel of each, all then lies side by side in the nearest cache.
"""
TOGETHER = 8
"""So many samples of one row each are the lowest subtree, which stays in registers."""


class Sizes(NamedTuple):
    """What the kernel needs to know, in elements; it reads it from an array of integers in this order."""

    steps: int  # rows of a sample, which are summed up in their order
    rows: int
    columns: int
    left_sample: int
    left_step: int
    left_row: int
    right_sample: int
    right_step: int  # the elements of a row are neighbours
    leaves: int  # 2**levels
    levels: int
    row_blocks: int
    column_blocks: int


@kernel
def tree_product(b: Builder, arguments: Arguments, dtype: str, single: bool) -> None:
    """(out, left, right, starts, sizes): out = the sum over samples s and steps t of outer(left[s, t], right[s, t]).

    `starts` has the first sample of each of the lowest subtrees, and the number of samples. With `single` there is one
    step, and these have at most `TOGETHER` samples; else they have one or two, and the matrices come in panels, the
    last of which are filled up with zeros.
    """
    scalar = SCALARS[dtype]
    multiply = Product(b, scalar)
    pointers = [arguments.array(number).data for number in range(5)]
    sizes = Fields(b, pointers[4], Sizes)
    samples = integer_at(b, pointers[3], sizes.leaves)
    work = b.smaller(sizes.rows, ROWS) * b.smaller(sizes.columns, COLUMNS) * sizes.steps * samples
    grain = steps_worth(b, work, MULTIPLICATIONS)
    units = sizes.row_blocks * sizes.column_blocks
    with b.parallel(units, grain, *pointers, unlock=True) as (c, begin, end, (out, left, right, starts, table)):
        part = _Part(c, scalar, Fields(c, table, Sizes))
        levels, leaves, row_blocks = part.levels, part.leaves, part.row_blocks
        copied = TOGETHER * ROWS if single else 0
        with scratch(c, scalar, (levels + 1) * _TILE + copied) as room, c.loop(begin, end) as unit:
            row, column = unit % row_blocks * ROWS, unit // row_blocks * COLUMNS
            part.room = c.at(room, scalar, (levels + 1) * _TILE)
            part.move(left, right, row, column)
            height = c.variable(I64, 0)
            with c.loop(0, leaves) as leaf:
                first = integer_at(c, starts, leaf)
                count = integer_at(c, starts, leaf + 1) - first
                top = c.at(room, scalar, height.value * _TILE)
                if single:
                    part.write_rows(first, count, top)
                else:
                    part.write_samples(multiply, first, count, top)
                rest = c.variable(I64, leaf)
                with c.repeat_while() as go_on_if:  # this was the second half of so many subtrees
                    go_on_if((rest.value & 1) != 0)
                    upper = c.at(room, scalar, height.value * _TILE)
                    height.value = height.value - 1
                    part.add(c.at(room, scalar, height.value * _TILE), upper)
                    rest.value = rest.value >> 1
                height.value = height.value + 1
            part.copy_out(room, c.at(out, scalar, row * part.all_columns + column))


class _Part:
    """The block of a result that one thread computes; its subtrees' sums are tiles of `ROWS` x `COLUMNS`."""

    rows: Value
    columns: Value
    left: Value
    right: Value
    room: Value
    """Where the factors of a few samples are copied to."""

    def __init__(self, c: Builder, scalar: Scalar, sizes: Fields) -> None:
        self.c, self.scalar, self.width = c, scalar, 64 // scalar.size
        # Read once: what is stored in between might be these numbers, for all that the compiler knows.
        self.steps, self.all_rows, self.all_columns = sizes.steps, sizes.rows, sizes.columns
        self.left_sample, self.left_step, self.left_row = sizes.left_sample, sizes.left_step, sizes.left_row
        self.right_sample, self.right_step = sizes.right_sample, sizes.right_step
        self.leaves, self.levels, self.row_blocks = sizes.leaves, sizes.levels, sizes.row_blocks

    def move(self, left: Value, right: Value, row: Value, column: Value) -> None:
        """Let it be the block that begins at this row and column."""
        c = self.c
        self.rows = c.smaller(self.all_rows - row, ROWS)
        self.columns = c.smaller(self.all_columns - column, COLUMNS)
        # A panel of n columns has n elements for each step, and so have the columns before it.
        self.left = c.at(left, self.scalar, row * self.left_row * self.steps)
        self.right = c.at(right, self.scalar, column * self.steps)

    def write_samples(self, multiply: Product, first: Value, count: Value, top: Value) -> None:
        """The sum of one or two samples, of several steps each."""
        self._write_sample(multiply, first, top, 0)
        with self.c.when(count > 1):
            self._write_sample(multiply, first + 1, top, 1)

    def _write_sample(self, multiply: Product, sample: Value, tile: Value, add: int) -> None:
        c, scalar = self.c, self.scalar
        left = c.at(self.left, scalar, sample * self.left_sample)
        right = c.at(self.right, scalar, sample * self.right_sample)
        with c.loop(0, self.columns, PANEL_COLUMNS) as column, c.loop(0, self.rows, PANEL_ROWS) as row:
            rows = c.at(left, scalar, row * self.steps), 1, PANEL_ROWS
            columns = c.at(right, scalar, column * self.steps), PANEL_COLUMNS
            place = c.at(tile, scalar, row * COLUMNS + column), COLUMNS
            multiply(c, (PANEL_ROWS, PANEL_COLUMNS, self.steps), rows, columns, place, add)

    def write_rows(self, first: Value, count: Value, top: Value) -> None:
        """The tree over the products of a few rows."""
        c, scalar = self.c, self.scalar
        left = c.at(self.left, scalar, first * self.left_sample)
        for each in range(TOGETHER):  # of the next subtree
            sample = first + count + each
            for at in range(0, 64, self.width):
                c.prefetch(c.at(self.right, scalar, sample * self.right_sample + at))
                c.prefetch(c.at(self.left, scalar, sample * self.left_sample + at))
        with c.loop(0, count) as sample:
            line, target = c.at(left, scalar, sample * self.left_sample), c.at(self.room, scalar, sample * ROWS)
            with c.either(self.left_row == 1) as (dense, apart):
                with dense:
                    for row, lanes in c.lanes(0, self.rows, self.width):
                        c.store(target, scalar, row, c.load(line, scalar, row, lanes))
                with apart, c.loop(0, self.rows) as row:
                    c.store(target, scalar, row, c.load(line, scalar, row * self.left_row))
        for number in range(1, TOGETHER + 1):
            with c.when(count == number):
                self._write_tree(first, number, top)

    def _write_tree(self, first: Value, count: int, top: Value) -> None:
        c, scalar = self.c, self.scalar
        right = c.at(self.right, scalar, first * self.right_sample)
        for column, width in c.lanes(0, self.columns, self.width):
            lines = [c.load(right, scalar, self.right_sample * each + column, width) for each in range(count)]
            with c.loop(0, self.rows) as row:
                factors = c.at(self.room, scalar, row)
                products = [
                    c.splat(c.load(factors, scalar, each * ROWS), width) * line for each, line in enumerate(lines)
                ]
                c.store(top, scalar, row * COLUMNS + column, _tree(products))

    def add(self, tile: Value, other: Value) -> None:
        """Add a tile to another one."""
        c, scalar = self.c, self.scalar
        with c.loop(0, self.rows) as row:
            for column, width in c.lanes(0, self.columns, self.width):
                place = row * COLUMNS + column
                c.store(tile, scalar, place, c.load(tile, scalar, place, width) + c.load(other, scalar, place, width))

    def copy_out(self, tile: Value, out: Value) -> None:
        """Copy a tile to its place in the result."""
        c, scalar = self.c, self.scalar
        with c.loop(0, self.rows) as row:
            for column, width in c.lanes(0, self.columns, self.width):
                c.store(
                    out, scalar, row * self.all_columns + column, c.load(tile, scalar, row * COLUMNS + column, width)
                )


def _tree(values: list[Value]) -> Value:
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    return _tree(values[:middle]) + _tree(values[middle:])
