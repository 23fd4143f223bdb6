"""The largest or smallest elements along a dimension of an array without gaps, and where the first of each is."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder, Value
from ..ir import ir
from ..kernel import kernel
from ..reduction import start_of
from ..shares import ELEMENTS, steps_worth
from ..types import I32, I64, SCALARS, Scalar
from .reduce import combination
from .shared import steps

LONGEST = 2**31 - 1
"""Positions are 32 bits wide until they are stored."""
_QUARTER = 4
"""So many elements of a row are compared at a time where a whole vector is too long."""
_COLUMNS = 64
"""So many columns are compared at a time."""


def _element(c: Builder, line: Value, scalar: Scalar, place: Value | int, lanes: int = 1) -> Value:
    value = c.load(line, scalar, place, lanes)
    value.signed = scalar.is_signed
    return value


def _numbers(c: Builder, first: Value, lanes: int) -> Value:
    """`first` and the numbers that follow it."""
    start = c.splat(c.convert(first, I32), lanes)
    return start if lanes == 1 else start + Value(c, ir.Constant(ir.VectorType(I32, lanes), list(range(lanes))))


@kernel
def extreme_of_rows(b: Builder, arguments: Arguments, largest: bool, dtype: str) -> None:
    """(values, positions, x, rows, length): NaN is the largest and the smallest.

    A row, which stays in the cache, is gone through twice: for its extreme, and for the first element that equals it.
    """
    scalar, index = SCALARS[dtype], SCALARS["int64"]
    kind, widths = ("maximum" if largest else "minimum"), (128 // max(4, scalar.size), _QUARTER, 1)
    captured = [arguments.array(number).data for number in range(3)]
    rows, length = arguments.integer(3), arguments.integer(4)
    with b.parallel(rows, steps_worth(b, length), *captured, length, unlock=True) as (c, begin, end, inside):
        values, positions, x, length_ = inside
        combine, start = combination(c, kind), start_of(kind, dtype)
        with c.loop(begin, end) as row:
            line = c.at(x, scalar, row * length_)
            extremes = {each: c.variable(scalar.compute, start, each, scalar.is_signed) for each in widths}
            for place, lanes in c.lanes(0, length_, *widths):
                extremes[lanes].value = combine(extremes[lanes].value, _element(c, line, scalar, place, lanes))
            best = extremes[1].value
            for each in widths[:-1]:
                best = combine(c.fold(extremes[each].value, combine), best)
            places = {each: c.variable(I32, LONGEST, each) for each in widths}
            for place, lanes in c.lanes(0, length_, *widths):
                value, found = _element(c, line, scalar, place, lanes), places[lanes]
                wanted = c.splat(best, lanes)
                is_best = value == wanted
                if scalar.is_float:
                    is_best = is_best | ((value != value) & (wanted != wanted))
                found.value = c.smaller(found.value, c.select(is_best, _numbers(c, place, lanes), LONGEST))
            first = places[1].value
            for each in widths[:-1]:
                first = c.smaller(c.smallest(places[each].value), first)
            position = c.convert(first, I64)
            c.store(positions, index, row, position)
            chosen = c.load_raw(c.at(line, scalar, position), scalar.memory, scalar.size)
            c.store_raw(chosen, c.at(values, scalar, row), None, scalar.size)


@kernel
def extreme_of_columns(b: Builder, arguments: Arguments, largest: bool, dtype: str) -> None:
    """(values, positions, x, outer, length, inner): along the middle dimension; NaN is the largest and the smallest."""
    scalar, index = SCALARS[dtype], SCALARS["int64"]
    captured = [arguments.array(number).data for number in range(3)]
    outer, length, inner = (arguments.integer(number) for number in range(3, 6))
    blocks = (inner + (_COLUMNS - 1)) // _COLUMNS
    grain = steps_worth(b, length * b.smaller(inner, _COLUMNS), ELEMENTS)
    with b.parallel(outer * blocks, grain, *captured, length, inner, blocks, unlock=True) as (c, begin, end, inside):
        values, positions, x, length_, inner_, blocks_ = inside
        with c.loop(begin, end) as task:
            batch = task // blocks_
            column = (task - batch * blocks_) * _COLUMNS
            source = c.opaque(c.at(x, scalar, batch * length_ * inner_ + column))
            target = batch * inner_ + column
            for place, lanes in steps(c, 0, c.smaller(inner_ - column, _COLUMNS), _COLUMNS, 16, 4):
                best = c.variable(scalar.compute, _element(c, source, scalar, place, lanes), lanes, scalar.is_signed)
                where = c.variable(I32, 0, lanes)
                with c.loop(1, length_) as row:
                    value = _element(c, source, scalar, row * inner_ + place, lanes)
                    old = best.value
                    wins = value > old if largest else value < old
                    if scalar.is_float:
                        wins = wins | ((value != value) & (old == old))
                    best.value = c.select(wins, value, old)
                    where.value = c.select(wins, c.splat(c.convert(row, I32), lanes), where.value)
                c.store(values, scalar, target + place, best.value)
                c.store(positions, index, target + place, c.convert(where.value, I64))
