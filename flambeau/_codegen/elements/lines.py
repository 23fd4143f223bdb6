"""Lines of neighbouring elements, copied as they stand or backwards."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..rows.shared import rows_per_share
from ..types import SCALARS, Scalar


def copy_line(c: Builder, scalar: Scalar, target: Value, source: Value, count: Value, backwards: bool = False) -> None:
    """Copy `count` elements from one line to another, apart from it."""
    width = 64 // scalar.size

    def move(place: Value, lanes: int) -> None:
        value = c.load(source, scalar, count - lanes - place if backwards else place, lanes)
        if backwards and lanes > 1:
            value = c.shuffle(value, None, range(lanes - 1, -1, -1))
        c.store(target, scalar, place, value)

    with c.either(count < width) as (short, long):
        with short, c.loop(0, count) as place:
            move(place, 1)
        with long:
            with c.loop(0, count - width, width) as place:
                move(place, width)
            move(count - width, width)  # once more what it shares with the one before, rather than single elements


@kernel
def reversed_lines(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, x, lines, length): each line of x backwards; arrays have no gaps."""
    scalar = SCALARS[dtype]
    out, x = arguments.array(0).data, arguments.array(1).data
    lines, length = arguments.integer(2), arguments.integer(3)
    with b.parallel(lines, rows_per_share(b, length), out, x, length, unlock=True) as (c, begin, end, inside):
        out_, x_, length_ = inside
        with c.loop(begin, end) as line:
            target, source = (c.opaque(c.at(each, scalar, line * length_)) for each in (out_, x_))
            copy_line(c, scalar, target, source, length_, backwards=True)
