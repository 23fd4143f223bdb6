"""Images with their edges continued: mirrored, or repeated."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder, Operand, Value
from ..elements.lines import copy_line
from ..kernel import kernel
from ..rows.shared import rows_per_share
from ..types import SCALARS

REFLECT, REPLICATE = "reflect", "replicate"


def _source(c: Builder, place: Value, size: Operand, mode: str) -> Value:
    """Where the element at `place` comes from, which may lie before the first or behind the last."""
    last = c.integer(size) - 1
    if mode == REPLICATE:
        return c.larger(c.smaller(place, last), 0)
    return last - c.abs(last - c.abs(place))


@kernel
def pad_edges(b: Builder, arguments: Arguments, dtype: str, mode: str) -> None:
    """(out, x, planes, 3 sizes of x, 3 sizes of out, 3 amounts before); none is cut off, arrays have no gaps."""
    scalar = SCALARS[dtype]
    out, x = arguments.array(0).data, arguments.array(1).data
    planes, *numbers = (arguments.integer(number) for number in range(2, 12))
    depth, height, width = numbers[3:6]
    with b.parallel(planes * depth * height, rows_per_share(b, width), out, x, *numbers, unlock=True) as shares:
        c, begin, end, (out_, x_, *numbers_) = shares
        given, wanted, before = numbers_[:3], numbers_[3:6], numbers_[6:]
        with c.loop(begin, end) as row:
            slice_ = row // wanted[1]
            plane = slice_ // wanted[0]
            front = _source(c, slice_ - plane * wanted[0] - before[0], given[0], mode)
            line = _source(c, row - slice_ * wanted[1] - before[1], given[1], mode)
            source = c.opaque(c.at(x_, scalar, ((plane * given[0] + front) * given[1] + line) * given[2]))
            target = c.opaque(c.at(out_, scalar, row * wanted[2]))
            copy_line(c, scalar, c.at(target, scalar, before[2]), source, given[2])
            for first, last in ((0, before[2]), (before[2] + given[2], wanted[2])):
                with c.loop(first, last) as column:
                    from_ = _source(c, column - before[2], given[2], mode)
                    c.store(target, scalar, column, c.load(source, scalar, from_))
