"""A copy that takes one element of each of a few lines in turn: pairs, triples or quadruples of neighbours result."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..shares import ELEMENTS, steps_worth
from ..types import SCALARS

MOST = 4
"""So many lines at most: of more, each of a block's rows is worth a vector of its own."""
_TILE = 8192
"""Elements of a line that one thread copies at least, where lines are longer."""


@kernel
def interleaved(b: Builder, arguments: Arguments, bits: str, lines: int) -> None:
    """(out, x, first, second, third, length, 3 distances, apart): out[..., i, j] = x[..., j][i], j one of `lines`.

    `out` has no gaps. Three dimensions are around the lines, which are `length` neighbours each; distances along these
    dimensions, and how far lines lie `apart`, are in bytes.
    """
    scalar = SCALARS[bits]
    width = min(16, 64 // scalar.size)
    out, x = arguments.array(0).data, arguments.array(1).data
    first, second, third, length = (arguments.integer(number) for number in range(2, 6))
    distances = [arguments.integer(number) for number in range(6, 9)]
    apart = arguments.integer(9)
    tiles = (length + (_TILE - 1)) // _TILE
    captured = (out, x, second, third, length, *distances, apart, tiles)
    grain = steps_worth(b, b.smaller(length, _TILE) * lines, ELEMENTS)
    with b.parallel(first * second * third * tiles, grain, *captured, unlock=True) as (c, begin, end, inside):
        out_, x_, second_, third_, length_, *distances_, apart_, tiles_ = inside
        with c.loop(begin, end) as task:
            number = task // tiles_
            start = (task - number * tiles_) * _TILE
            stop = c.smaller(start + _TILE, length_)
            row = number // third_
            place = row // second_, row % second_, number % third_
            source = x_
            for position, distance in zip(place, distances_, strict=True):
                source = source + position * distance
            sources = [c.opaque(source + apart_ * line) for line in range(lines)]
            target = c.opaque(c.at(out_, scalar, number * length_ * lines))
            for position, lanes in c.lanes(start, stop, width):
                read = [c.load(each, scalar, position, lanes) for each in sources]
                for part, value in enumerate(_in_turn(c, read)):
                    c.store(target, scalar, position * lines + part * lanes, value)


def _in_turn(c: Builder, vectors: list[Value]) -> list[Value]:
    """The elements of vectors in turn, as vectors."""
    count, lanes = len(vectors), vectors[0].lanes
    if lanes == 1:
        return vectors
    mixed = []
    for part in range(count):
        takes = [divmod(part * lanes + lane, count) for lane in range(lanes)]  # which element, and whose
        made = vectors[0]
        for number in range(1, count):
            kept = range(lanes) if number > 1 else [element for element, _ in takes]
            chosen = [
                lanes + element if whose == number else old for (element, whose), old in zip(takes, kept, strict=True)
            ]
            made = c.shuffle(made, vectors[number], chosen)
        mixed.append(made)
    return mixed
