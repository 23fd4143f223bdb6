"""Transposed copies of matrices: what are rows in one array are columns in the other."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..products.gemm import BLOCK, transposed
from ..types import SCALARS, Scalar

_TILE = 64
"""Rows and columns that are copied together: what they touch fits into the fastest cache."""
_WIDE = 8
"""Rows and columns of a block."""


@kernel
def transposed_copy(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, x, batch, rows, columns, batch_step, column_step): out[i, r, c] = x[i * batch_step + c * column_step + r].

    `out` is without gaps; steps are counted in elements.
    """
    scalar = SCALARS[dtype]
    out, x = arguments.array(0).data, arguments.array(1).data
    batch, rows, columns, batch_step, column_step = (arguments.integer(number) for number in range(2, 7))
    lines = (rows + _TILE - 1) // _TILE
    tiles = (columns + _TILE - 1) // _TILE
    captured = (out, x, rows, columns, batch_step, column_step, lines, tiles)
    with b.parallel(batch * lines * tiles, 4, *captured, unlock=True) as (c, begin, end, inside):
        out, x, rows, columns, batch_step, column_step, lines, tiles = inside
        with c.loop(begin, end) as task:
            line = task // tiles
            first_column = (task - line * tiles) * _TILE
            number = line // lines
            first_row = (line - number * lines) * _TILE
            source = c.opaque(c.at(x, scalar, number * batch_step + first_column * column_step + first_row))
            target = c.opaque(c.at(out, scalar, (number * rows + first_row) * columns + first_column))
            height, width = c.smaller(rows - first_row, _TILE), c.smaller(columns - first_column, _TILE)
            whole_height, whole_width = height // _WIDE * _WIDE, width // _WIDE * _WIDE
            with c.loop(0, whole_height, _WIDE) as row, c.loop(0, whole_width, _WIDE) as column:
                _turn(c, scalar, source, column_step, target, columns, row, column, _WIDE, _WIDE)
            # What is left: the columns behind the blocks, and all columns below them.
            for first, last, left in ((c.integer(0), whole_height, whole_width), (whole_height, height, c.integer(0))):
                for row, tall in c.lanes(first, last, BLOCK):
                    for column, wide in c.lanes(left, width, BLOCK):
                        _turn(c, scalar, source, column_step, target, columns, row, column, tall, wide)


def _turn(
    c: Builder,
    scalar: Scalar,
    source: Value,
    source_step: Value,
    target: Value,
    target_step: Value,
    row: Value,
    column: Value,
    tall: int,
    wide: int,
) -> None:
    """Copy a block of as many rows as columns, or one of a single row or column that is left at an edge."""
    read = [c.load(source, scalar, (column + number) * source_step + row, tall) for number in range(wide)]
    if tall == wide > 1:
        for number, value in enumerate(transposed(c, read)):
            c.store(target, scalar, (row + number) * target_step + column, value)
        return
    for down in range(tall):
        for right, value in enumerate(read):
            element = c.lane(value, down) if tall > 1 else value
            c.store(target, scalar, (row + down) * target_step + column + right, element)
