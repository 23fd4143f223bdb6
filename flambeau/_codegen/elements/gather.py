"""Kernels that read and write at positions along a dimension.

Arrays are seen in three dimensions (outer, along, inner). `out[o, i, j] = x[o, index[o, i, j], j]` gathers, and
`target[o, index[o, i, j], j] = x[o, i, j]`, or `+=` and the like, scatters. Steps between elements are counted in
elements. There are three forms:

- SINGLE: the inner dimension has one element, and those along the dimension are neighbours, in the index too.
- LINES: the index is the same along the inner dimension, whose elements are neighbours.
- GRID: all others.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..rows.reduce import combination
from ..shares import ELEMENTS, steps_worth
from ..types import I64, SCALARS, Scalar

SINGLE, LINES, GRID = "single", "lines", "grid"

UNROLLED = 4
"""So many positions are read before the elements there."""
COLUMNS = 32
"""One thread writes at least so many neighbours."""


@kernel
def positions_within(b: Builder, arguments: Arguments, index: str) -> None:
    """(wrong, index, count, size): `wrong`, of int64, becomes 1 if a position is not in [0, size)."""
    scalar = SCALARS[index]
    wrong, positions = (arguments.array(number).data for number in range(2))
    count, size = (arguments.integer(number) for number in range(2, 4))
    with b.parallel(count, ELEMENTS, wrong, positions, size, unlock=True) as (c, begin, end, inside):
        wrong_, positions_, size_ = inside
        limit = c.convert(c.smaller(size_, 2 ** (8 * scalar.size - 1) - 1), scalar.compute)
        width = 64 // scalar.size
        found = {lanes: c.variable(scalar.compute, 0, lanes) for lanes in (width, 1)}
        for position, lanes in c.lanes(begin, end, width):
            value = c.load(positions_, scalar, position, lanes)
            # Of what is left of the size above a position, and of the position, neither is negative.
            found[lanes].value = found[lanes].value | value | (limit - 1 - value)
        seen = c.fold(found[width].value, lambda x, y: x | y) | found[1].value
        with c.when(seen < 0):
            c.store(wrong_, SCALARS["int64"], 0, 1)


class _Steps:
    """How far neighbours along the three dimensions lie apart."""

    def __init__(self, values: list[Value]) -> None:
        self.outer, self.along, self.inner = values


def _position(c: Builder, index: Value, kind: Scalar, place: Value) -> Value:
    return c.convert(c.load(index, kind, place), I64)


def _lines(c: Builder, begin: Value, end: Value, count: Value) -> Iterator[tuple[Value, Value, Value]]:
    """Loops over a range of lines, `count` of which are in each slice: the slice, and its first and last line."""
    with c.loop(begin // count, (end + count - 1) // count) as outer:
        start = outer * count
        yield outer, c.larger(begin - start, 0), c.smaller(end - start, count)


@kernel
def gather_along(b: Builder, arguments: Arguments, dtype: str, index: str, form: str) -> None:
    """(out, x, index, outer, along, inner, 3 steps of x, 3 steps of the index); `out` has no gaps."""
    scalar, kind = SCALARS[dtype], SCALARS[index]
    captured = [arguments.array(number).data for number in range(3)]
    outer, along, inner, *steps = (arguments.integer(number) for number in range(3, 12))
    captured += [along, inner, *steps]
    grain = steps_worth(b, inner)
    with b.parallel(outer * along, grain, *captured, unlock=True) as (c, begin, end, inside):
        out, x, index_, along_, inner_, *steps_ = inside
        of_x, of_index = _Steps(steps_[:3]), _Steps(steps_[3:])
        for slice_, first, last in _lines(c, begin, end, along_):
            source = c.at(x, scalar, slice_ * of_x.outer)
            places = c.at(index_, kind, slice_ * of_index.outer)
            target = c.at(out, scalar, slice_ * along_ * inner_)
            if form == SINGLE:
                for number, several in c.lanes(first, last, UNROLLED):
                    found = [_position(c, places, kind, number + each) for each in range(several)]
                    values = [c.load(source, scalar, place) for place in found]
                    for each, value in enumerate(values):
                        c.store(target, scalar, number + each, value)
                continue
            with c.loop(first, last) as number:
                line = c.at(target, scalar, number * inner_)
                if form == LINES:
                    from_ = c.at(source, scalar, _position(c, places, kind, number * of_index.along) * of_x.along)
                    for column, lanes in c.lanes(0, inner_, 64 // scalar.size):
                        c.store(line, scalar, column, c.load(from_, scalar, column, lanes))
                else:
                    with c.loop(0, inner_) as column:
                        place = _position(c, places, kind, number * of_index.along + column * of_index.inner)
                        value = c.load(source, scalar, place * of_x.along + column * of_x.inner)
                        c.store(line, scalar, column, value)


@kernel
def scatter_along(b: Builder, arguments: Arguments, dtype: str, given: str, index: str, form: str, how: str) -> None:
    """(target, x, index, outer, along, inner, 3 steps each of the target, x and the index, skipped).

    In the form LINES nothing is done for a position that is `skipped`. Elements of `x`, of type `given`, may be of half
    precision where those of the target are not.
    """
    scalar, source_type, kind = SCALARS[dtype], SCALARS[given], SCALARS[index]
    captured = [arguments.array(number).data for number in range(3)]
    outer, along, inner, *steps = (arguments.integer(number) for number in range(3, 15))
    skipped = arguments.integer(15)
    blocks = b.larger(inner // COLUMNS, 1)
    captured += [along, inner, *steps, skipped, blocks]
    grain = steps_worth(b, along * inner // b.larger(blocks, 1))
    # What meets at one position is written by one thread, in order: slices are divided by columns alone.
    with b.parallel(outer * blocks, grain, *captured, unlock=True) as (c, begin, end, inside):
        target, x, index_, along_, inner_, *steps_, skipped_, blocks_ = inside
        of_target, of_x, of_index = (_Steps(steps_[start : start + 3]) for start in (0, 3, 6))

        combine = None if how == "write" else combination(c, how)

        def put(into: Value, place: Value, value: Value) -> None:
            if combine is not None:
                value = combine(c.load(into, scalar, place, value.lanes), value)
            c.store(into, scalar, place, value)

        for slice_, first, last in _lines(c, begin, end, blocks_):
            into, source = c.at(target, scalar, slice_ * of_target.outer), c.at(x, source_type, slice_ * of_x.outer)
            places = c.at(index_, kind, slice_ * of_index.outer)
            first_column = first * COLUMNS
            last_column = c.select(last == blocks_, inner_, last * COLUMNS)
            if form == SINGLE:
                for number, several in c.lanes(0, along_, UNROLLED):
                    found = [_position(c, places, kind, number + each) for each in range(several)]
                    for each, place in enumerate(found):
                        put(into, place, c.load(source, source_type, number + each))
                continue
            with c.loop(0, along_) as number:
                if form == LINES:
                    position = _position(c, places, kind, number * of_index.along)
                    with c.when(position != skipped_):
                        line = c.at(source, source_type, number * of_x.along)
                        place = position * of_target.along
                        for column, lanes in c.lanes(first_column, last_column, 64 // source_type.size):
                            put(into, place + column, c.load(line, source_type, column, lanes))
                else:
                    with c.loop(first_column, last_column) as column:
                        place = _position(c, places, kind, number * of_index.along + column * of_index.inner)
                        value = c.load(source, source_type, number * of_x.along + column * of_x.inner)
                        put(into, place * of_target.along + column * of_target.inner, value)
