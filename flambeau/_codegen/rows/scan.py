"""Running sums and products of an array without gaps, seen as (outer, length, inner), along its middle dimension.

What has been summed up so far is kept in a type wider than the array's, and rounded for each element that is written:
errors do not build up. A line is gone through in order, so that the result is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable

from ..arrays import Arguments
from ..build import Builder, Value, Variable
from ..functions import logaddexp
from ..functions.exponential import exp_of_difference
from ..functions.logarithm import log
from ..ir import ir
from ..kernel import kernel
from ..shares import ELEMENTS, steps_worth
from ..types import F32, F64, I32, I64, SCALARS, Scalar

Step = Callable[[Value, Value, Value], Value]

_COLUMNS = 512
"""How many columns are gone through side by side: what they have summed up stays in the cache."""
_WIDTH = 16
_BLOCK = 8
"""How many neighbours are added to a logarithm of a sum at a time."""


def _wide(kind: str, scalar: Scalar) -> ir.Type:
    """What is summed up in. Half precision needs no more than float32, unless logarithms are taken in between."""
    if not scalar.is_float:
        return I64
    return F32 if scalar.size == 2 and kind != "logaddexp" else F64


def _start(kind: str) -> float:
    return {"add": 0.0, "multiply": 1.0, "logaddexp": float("-inf"), "fading": 0.0}[kind]


def _step(c: Builder, kind: str) -> Step:
    """What follows the sum so far at an element, which comes with what the sum fades by."""
    if kind == "add":
        return lambda total, x, _: total + x
    if kind == "multiply":
        return lambda total, x, _: total * x
    if kind == "logaddexp":
        return lambda total, x, _: logaddexp(c, total, x)
    return lambda total, x, fade: x + fade * total


@kernel
def scan_rows(b: Builder, arguments: Arguments, kind: str, dtype: str) -> None:
    """(out, x, fade, rows, length): rows that are contiguous; `fade` is another array for the kind "fading" alone."""
    scalar = SCALARS[dtype]
    wide = _wide(kind, scalar)
    out, x, fade = (arguments.array(number).data for number in range(3))
    rows, length = arguments.integer(3), arguments.integer(4)
    grain = steps_worth(b, length, ELEMENTS // 2)
    with b.parallel(rows, grain, out, x, fade, length, unlock=True) as (c, begin, end, (out, x, fade, length)):
        step = _step(c, kind)
        with c.loop(begin, end) as row:
            target, source, fades = (c.at(each, scalar, row * length) for each in (out, x, fade))
            if kind == "logaddexp":
                _log_row(c, scalar, target, source, length)
            else:
                total = c.variable(wide, _start(kind))
                with c.loop(0, length) as place:
                    faded = c.convert(c.load(fades, scalar, place), wide)
                    total.value = step(total.value, c.convert(c.load(source, scalar, place), wide), faded)
                    c.store(target, scalar, place, c.convert(total.value, scalar.compute))


@kernel
def extreme_rows(b: Builder, arguments: Arguments, largest: bool, dtype: str) -> None:
    """(values, indices, x, rows, length): the extremes so far and where they were last attained; a NaN stays."""
    scalar, position = SCALARS[dtype], SCALARS["int64"]
    values, indices, x = (arguments.array(number).data for number in range(3))
    rows, length = arguments.integer(3), arguments.integer(4)
    grain = steps_worth(b, length, ELEMENTS // 2)
    with b.parallel(rows, grain, values, indices, x, length, unlock=True) as (c, begin, end, inside):
        values_, indices_, x_, length_ = inside
        with c.loop(begin, end) as row:
            source, target = c.at(x_, scalar, row * length_), c.at(values_, scalar, row * length_)
            places = c.at(indices_, position, row * length_)
            best = c.variable(scalar.compute, c.load(source, scalar), 1, scalar.is_signed)
            at = c.variable(I64, 0)

            def is_attained(place: Value, lanes: int, best: Variable = best, source: Value = source) -> Value:
                value = c.load(source, scalar, place, lanes)
                value.signed = scalar.is_signed
                attained = value >= best.value if largest else value <= best.value
                return attained | (value != value) if scalar.is_float else attained

            def one(place: Value, best: Variable = best, at: Variable = at, source: Value = source) -> None:
                attained = is_attained(place, 1)
                best.value = c.select(attained, c.load(source, scalar, place), best.value)
                at.value = c.select(attained, place, at.value)

            # Extremes become rare: where a block has none, it is filled with the last one.
            for place, lanes in c.lanes(0, length_, _WIDTH):
                if lanes == 1:
                    one(place)
                    c.store(target, scalar, place, best.value)
                    c.store(places, position, place, at.value)
                    continue
                found = c.fold(c.convert(is_attained(place, lanes), I32, False), lambda x, y: x | y)
                with c.either(found != 0) as (some, none):
                    with some, c.loop(place, place + lanes) as each:
                        one(each)
                        c.store(target, scalar, each, best.value)
                        c.store(places, position, each, at.value)
                    with none:
                        c.store(target, scalar, place, c.splat(best.value, lanes))
                        c.store(places, position, place, c.splat(at.value, lanes))


def _log_row(c: Builder, scalar: Scalar, target: Value, source: Value, length: Value) -> None:
    """Logarithms of running sums of exponentials, a block of neighbours at a time.

    The sum so far is `total * exp(top)`, where `top` is the largest element so far; a block takes one exponential and
    one logarithm of a vector. Where elements are so far apart that the difference to `top` would cost digits, or are
    not finite, the block is added one by one.
    """
    top, total = c.variable(F64, float("-inf")), c.variable(F64, 0.0)
    reach = 16.0 if scalar.size == 8 else 600.0
    whole = length // _BLOCK * _BLOCK
    with c.loop(0, whole, _BLOCK) as place:
        values = c.convert(c.load(source, scalar, place, _BLOCK), F64)
        highest = c.maximum(c.largest(values), top.value)
        lowest = c.larger(top.value, c.lane(values, 0))  # no result of the block is below it
        with c.either(highest - lowest <= reach) as (near, far):
            with near:
                with c.when(highest > top.value):
                    total.value = total.value * exp_of_difference(c, top.value - highest)
                    top.value = highest
                sums = _prefix_sums(c, exp_of_difference(c, values - highest)) + total.value
                total.value = c.lane(sums, _BLOCK - 1)
                c.store(target, scalar, place, c.convert(log(c, sums) + highest, scalar.compute))
            with far:
                _log_steps(c, scalar, target, source, place, place + _BLOCK, top, total)
    _log_steps(c, scalar, target, source, whole, length, top, total)


def _log_steps(
    c: Builder, scalar: Scalar, target: Value, source: Value, begin: Value, end: Value, top: Variable, total: Variable
) -> None:
    top.value = top.value + log(c, total.value)
    total.value = 1.0
    with c.loop(begin, end) as place:
        top.value = logaddexp(c, top.value, c.convert(c.load(source, scalar, place), F64))
        c.store(target, scalar, place, c.convert(top.value, scalar.compute))


def _prefix_sums(c: Builder, vector: Value) -> Value:
    """At each lane the sum of the lanes up to it."""
    lanes, distance = vector.lanes, 1
    zero = c.constant(vector.type, 0.0)
    while distance < lanes:
        moved = c.shuffle(vector, zero, [lanes] * distance + list(range(lanes - distance)))
        vector, distance = vector + moved, 2 * distance
    return vector


@kernel
def scan_columns(b: Builder, arguments: Arguments, kind: str, dtype: str) -> None:
    """(out, x, fade, outer, length, inner): columns lie in the lanes of vectors."""
    scalar = SCALARS[dtype]
    wide = _wide(kind, scalar)
    kept = SCALARS["int64" if wide == I64 else "float32" if wide == F32 else "float64"]
    out, x, fade = (arguments.array(number).data for number in range(3))
    outer, length, inner = (arguments.integer(number) for number in (3, 4, 5))
    blocks = (inner + _COLUMNS - 1) // _COLUMNS
    grain = steps_worth(b, b.larger(length, 1) * b.smaller(inner, _COLUMNS), ELEMENTS // 2)
    captured = (out, x, fade, length, inner, blocks)
    with b.parallel(outer * blocks, grain, *captured, unlock=True) as (c, begin, end, inside):
        out, x, fade, length, inner, blocks = inside
        step = _step(c, kind)
        totals = c.stack(wide, _COLUMNS)
        with c.loop(begin, end) as task:
            batch = task // blocks
            column = (task - batch * blocks) * _COLUMNS
            count = c.smaller(inner - column, _COLUMNS)
            first = batch * length * inner + column
            start = c.constant(wide, _start(kind))
            for position, lanes in c.lanes(0, count, _WIDTH):
                c.store(totals, kept, position, c.splat(start, lanes))
            with c.loop(0, length) as row:
                target, source, fades = (c.at(each, scalar, first + row * inner) for each in (out, x, fade))
                for position, lanes in c.lanes(0, count, _WIDTH):
                    value = c.convert(c.load(source, scalar, position, lanes), wide)
                    faded = c.convert(c.load(fades, scalar, position, lanes), wide)
                    total = step(c.load(totals, kept, position, lanes), value, faded)
                    c.store(totals, kept, position, total)
                    c.store(target, scalar, position, c.convert(total, scalar.compute))
