"""Variances along one dimension of an array without gaps, seen as (outer, length, inner), in one call.

Sums are kept in float64: first those of the elements, then those of the squares of their distances to the mean.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..shares import ELEMENTS, steps_worth
from ..types import F64, SCALARS, Scalar

_WIDTH = 16

Summand = Callable[[Value], Value]
"""What an element adds to a sum."""


@kernel
def variances(b: Builder, arguments: Arguments, given: str, result: str, is_row: bool, root: bool) -> None:
    """(out, means, x, outer, length, inner, free): variances, or their roots, by `free` degrees of freedom.

    If `is_row`, the elements of a variance are neighbours, and `inner` is 1.
    """
    source, target = SCALARS[given], SCALARS[result]
    out, means, x = (arguments.array(number).data for number in range(3))
    outer, length, inner = (arguments.integer(number) for number in range(3, 6))
    grain = steps_worth(b, length * inner, ELEMENTS // 2)
    captured = (out, means, x, length, inner, arguments.float64(6))
    with b.parallel(outer, grain, *captured, unlock=True) as (c, begin, end, inside):
        out_, means_, x_, length_, inner_, free = inside

        def store(place: Value, total: Callable[[Summand], Value]) -> None:
            mean = total(lambda value: value) / c.convert(length_, F64)
            spread = c.convert(total(lambda value: (value - mean) * (value - mean)) / free, target.compute)
            c.store(out_, target, place, c.sqrt(spread) if root else spread)
            c.store(means_, target, place, c.convert(mean, target.compute))

        with c.loop(begin, end) as line:
            start = c.at(x_, source, line * length_ * inner_)
            if is_row:
                store(line, partial(_of_row, c, source, start, length_))
            else:
                for position, lanes in c.lanes(0, inner_, _WIDTH):
                    column = c.at(start, source, position)
                    store(line * inner_ + position, partial(_of_columns, c, source, column, length_, inner_, lanes))


def _of_row(c: Builder, source: Scalar, start: Value, length: Value, summand: Summand) -> Value:
    wide, single = c.variable(F64, 0.0, _WIDTH), c.variable(F64, 0.0)
    for position, lanes in c.lanes(0, length, _WIDTH):
        (wide if lanes > 1 else single).add(summand(c.convert(c.load(start, source, position, lanes), F64)))
    return c.fold(wide.value, lambda one, two: one + two) + single.value


def _of_columns(
    c: Builder, source: Scalar, column: Value, length: Value, step: Value, lanes: int, summand: Summand
) -> Value:
    total = c.variable(F64, 0.0, lanes)
    with c.loop(0, length) as row:
        total.add(summand(c.convert(c.load(column, source, row * step, lanes), F64)))
    return total.value
