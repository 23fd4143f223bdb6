"""Reductions of one dimension of an array without gaps, seen as (outer, length, inner).

The dimension is cut into chunks of a fixed length, which are reduced at the same time by several threads, and whose
results are then reduced in turn: rounding errors grow with the logarithm of the length, and the result does not depend
on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..lower import operation, run_program
from ..reduction import REDUCTIONS, start_of, summand_of
from ..shares import steps_worth
from ..types import SCALARS, Scalar
from .shared import steps, totals

ROW_CHUNK = 8192
"""How many neighbours in memory are reduced in one go."""
COLUMN_CHUNK = 64
"""How many rows are reduced in one go, where columns are."""
COLUMNS = 2048
"""How many columns are reduced at a time."""
_ORDERED = 128
"""How many columns a thread sums up in order before it takes others."""
_WIDTH = 64
"""How many bytes of results are computed at a time."""


def combination(b: Builder, kind: str) -> Callable[[Value, Value], Value]:
    """How two numbers become one in a reduction."""
    return partial(operation(REDUCTIONS[kind].join), b)


def _summand(c: Builder, kind: str, scalar: Scalar, value: Value, centre: Value | None) -> Value:
    """What an element adds to a reduction."""
    program = summand_of(kind, scalar.name)
    if program is None:
        return value
    return run_program(c, program, [value] if centre is None else [value, centre], value.lanes)[0]


_QUARTER = 4
"""So many elements of a row are compared at a time where a whole vector is too long."""


@kernel
def reduce_rows(b: Builder, arguments: Arguments, kind: str, given: str, result: str, stored: str, root: bool) -> None:
    """(out, x, rows, length, chunk, centres): chunks of rows that are contiguous; out has a column for each chunk.

    The kind "deviation" sums squares of distances to the row's centre; other kinds do not look at `centres`. What was
    computed as `result`, or its `root`, is `stored` as another dtype.
    """
    source, target, final = SCALARS[given], SCALARS[result], SCALARS[stored]
    out, x, centres = arguments.array(0).data, arguments.array(1).data, arguments.array(5).data
    rows, length, chunk = (arguments.integer(number) for number in (2, 3, 4))
    chunks = (length + chunk - 1) // chunk
    # The largest of a row is the same in whatever order; sums keep theirs.
    widths = (128 // max(4, target.size), *((_QUARTER,) if kind in ("maximum", "minimum") else ()), 1)
    grain = steps_worth(b, b.smaller(length, chunk))
    captured = (out, x, centres, length, chunk, chunks)
    with b.parallel(rows * chunks, grain, *captured, unlock=True) as (c, begin, end, inside):
        out_, x_, centres_, length_, chunk_, chunks_ = inside
        combine = combination(c, kind)
        start = start_of(kind, target.name)
        with c.loop(begin, end) as task:
            row = task // chunks_
            first = (task - row * chunks_) * chunk_
            last = c.smaller(first + chunk_, length_)
            place = c.at(x_, source, row * length_)
            parts = {lanes: c.variable(target.compute, start, lanes, target.is_signed) for lanes in widths}
            centre = c.load(centres_, target, row) if kind == "deviation" else None
            for position, lanes in c.lanes(first, last, *widths):
                value = c.convert(c.load(place, source, position, lanes), target.compute, target.is_signed)
                value = _summand(c, kind, target, value, centre)
                parts[lanes].value = combine(parts[lanes].value, value)
            total = parts[1].value
            for lanes in widths[:-1]:
                total = combine(c.fold(parts[lanes].value, combine), total)
            c.store(out_, final, task, c.convert(c.sqrt(total) if root else total, final.compute))


@kernel
def reduce_columns(b: Builder, arguments: Arguments, kind: str, given: str, result: str) -> None:
    """(out, x, outer, length, inner, chunk, centres): out is (outer, chunks, inner), centres (outer, inner).

    Rows are read as they lie in memory, four at a time, into a part of the result that stays in the cache.
    """
    source, target = SCALARS[given], SCALARS[result]
    out, x, centres = arguments.array(0).data, arguments.array(1).data, arguments.array(6).data
    outer, length, inner, chunk = (arguments.integer(number) for number in (2, 3, 4, 5))
    chunks = (length + chunk - 1) // chunk
    blocks = (inner + COLUMNS - 1) // COLUMNS
    grain = steps_worth(b, b.smaller(length, chunk) * b.smaller(inner, COLUMNS))
    captured = (out, x, centres, length, inner, chunk, chunks, blocks)
    with b.parallel(outer * chunks * blocks, grain, *captured, unlock=True) as (c, begin, end, inside):
        out_, x_, centres_, length_, inner_, chunk_, chunks_, blocks_ = inside
        combine = combination(c, kind)
        with c.loop(begin, end) as task:
            line = task // blocks_
            column = (task - line * blocks_) * COLUMNS
            count = c.smaller(inner_ - column, COLUMNS)
            batch = line // chunks_
            first = (line - batch * chunks_) * chunk_
            last = c.smaller(first + chunk_, length_)
            place = c.opaque(c.at(x_, source, batch * length_ * inner_ + column))
            goal = c.opaque(c.at(out_, target, line * inner_ + column))
            centre = c.at(centres_, target, batch * inner_ + column) if kind == "deviation" else None
            start = c.constant(target.compute, start_of(kind, target.name))
            fours = first + (last - first) // 4 * 4
            for position, lanes in c.lanes(0, count, _WIDTH // max(4, target.size)):
                c.store(goal, target, position, c.splat(start, lanes))
            with c.loop(first, fours, 4) as row:
                _take_rows(c, kind, source, target, place, goal, centre, inner_, row, 4, count, combine)
            with c.loop(fours, last) as row:
                _take_rows(c, kind, source, target, place, goal, centre, inner_, row, 1, count, combine)


def _take_rows(
    c: Builder,
    kind: str,
    source: Scalar,
    target: Scalar,
    place: Value,
    goal: Value,
    centre: Value | None,
    inner: Value,
    row: Value,
    rows: int,
    count: Value,
    combine: Callable[[Value, Value], Value],
) -> None:
    """Combine `rows` rows, in pairs, with what is there."""
    for position, lanes in c.lanes(0, count, _WIDTH // max(4, target.size)):
        values = [
            c.convert(c.load(place, source, (row + number) * inner + position, lanes), target.compute, target.is_signed)
            for number in range(rows)
        ]
        at = None if centre is None else c.load(centre, target, position, lanes)
        values = [_summand(c, kind, target, value, at) for value in values]
        while len(values) > 1:
            values = [combine(one, two) for one, two in zip(values[::2], values[1::2], strict=True)]
        c.store(goal, target, position, combine(c.load(goal, target, position, lanes), values[0]))


@kernel
def sums_in_order(b: Builder, arguments: Arguments, dtype: str, rows: bool) -> None:
    """(out, x, outer, length, inner): sums along the middle dimension, in float64, in one order for any other sizes.

    A column is summed up from its first element to its last. With `rows` `inner` is 1, and each lane of a vector adds
    up its own elements. Either way zeros behind the last element change nothing.
    """
    scalar, wide = SCALARS[dtype], SCALARS["float64"]
    out, x = arguments.array(0).data, arguments.array(1).data
    outer, length, inner = (arguments.integer(number) for number in (2, 3, 4))
    if rows:
        with b.parallel(outer, steps_worth(b, length), out, x, length, unlock=True) as (c, begin, end, inside):
            out_, x_, length_ = inside
            with c.loop(begin, end) as row:
                place = c.at(x_, scalar, row * length_)

                def terms(position: Value, lanes: int, c: Builder = c, place: Value = place) -> list[Value]:
                    return [c.convert(c.load(place, scalar, position, lanes), wide.compute)]

                (total,) = totals(c, 0, length_, 16, wide, 1, terms)
                c.store(out_, scalar, row, c.convert(total, scalar.compute))
        return
    blocks = (inner + (_ORDERED - 1)) // _ORDERED
    grain = steps_worth(b, length * b.smaller(inner, _ORDERED))
    with b.parallel(outer * blocks, grain, out, x, length, inner, blocks, unlock=True) as (c, begin, end, inside):
        out_, x_, length_, inner_, blocks_ = inside
        with c.loop(begin, end) as unit:
            batch = unit // blocks_
            column = (unit - batch * blocks_) * _ORDERED
            place = c.at(x_, scalar, batch * length_ * inner_ + column)
            goal = c.at(out_, scalar, batch * inner_ + column)
            for position, lanes in steps(c, 0, c.smaller(inner_ - column, _ORDERED), 32, 8):
                summed = c.variable(wide.compute, 0.0, lanes)
                with c.loop(0, length_) as row:
                    summed.add(c.convert(c.load(place, scalar, row * inner_ + position, lanes), wide.compute))
                c.store(goal, scalar, position, c.convert(summed.value, scalar.compute))


@kernel
def bounds(b: Builder, arguments: Arguments, given: str) -> None:
    """(least, largest, x, length): the smallest and the largest of elements that are contiguous, in one pass."""
    scalar = SCALARS[given]
    x, length = arguments.array(2).data, arguments.integer(3)
    ends = []
    for kind in ("minimum", "maximum"):
        start = start_of(kind, given)
        wide = b.variable(scalar.compute, start, 128 // max(4, scalar.size), scalar.is_signed)
        ends.append((combination(b, kind), wide, b.variable(scalar.compute, start, 1, scalar.is_signed)))
    for position, lanes in b.lanes(0, length, 128 // max(4, scalar.size)):
        value = b.load(x, scalar, position, lanes)
        for combine, wide, single in ends:
            part = wide if lanes > 1 else single
            part.value = combine(part.value, value)
    for number, (combine, wide, single) in enumerate(ends):
        found = combine(b.fold(wide.value, combine), single.value)
        b.store(arguments.array(number).data, scalar, 0, found)
