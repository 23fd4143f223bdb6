"""A kernel that keeps one triangle of each matrix."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder, Value
from ..ir import ir
from ..kernel import kernel
from ..shares import ELEMENTS, steps_worth
from ..types import I32, POINTER


@kernel
def triangle(b: Builder, arguments: Arguments, lower: bool) -> None:
    """(out, x, lines, rows, columns, size, diagonal): rows of matrices up to a diagonal, or from it on; else zeros.

    Arrays have no gaps; `lines` is the number of rows of all matrices, `size` that of an element's bytes.
    """
    out, x = arguments.array(0).data, arguments.array(1).data
    lines, rows, columns, size, diagonal = (arguments.integer(number) for number in range(2, 7))
    grain = steps_worth(b, columns * size, 2 * ELEMENTS)
    with b.parallel(lines, grain, out, x, rows, columns, size, diagonal, unlock=True) as (c, begin, end, inside):
        out_, x_, rows_, columns_, size_, diagonal_ = inside
        with c.loop(begin, end) as line:
            bound = line % rows_ + diagonal_ + (1 if lower else 0)
            bound = c.smaller(c.larger(bound, 0), columns_) * size_
            start, length = line * (columns_ * size_), columns_ * size_
            kept, cleared = ((0, bound), (bound, length)) if lower else ((bound, length), (0, bound))
            _zero(c, out_ + (start + cleared[0]), _distance(c, cleared))
            target, source = (each + (start + kept[0]) for each in (out_, x_))
            c.call("memcpy", POINTER, [target, source, _distance(c, kept)])


def _distance(c: Builder, part: tuple[Value | int, Value | int]) -> Value:
    return c.integer(part[1]) - part[0]


def _zero(c: Builder, place: Value, count: Value) -> None:
    c.call("memset", POINTER, [place, Value(c, ir.Constant(I32, 0)), count])
