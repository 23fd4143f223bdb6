"""Sums of a few elements along a dimension, each with a weight: how images are resized, and their gradients."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..shares import steps_worth
from ..types import SCALARS

_INT64 = SCALARS["int64"]


@kernel
def taps_summed(b: Builder, arguments: Arguments, dtype: str, weighted: bool, counted: bool) -> None:
    """(out, x, indices, weights, counts, outer, size, results, inner, taps).

    `x` is (outer, size, inner), `out` (outer, results, inner); indices and weights are (taps, results), counts is
    (results,): `out[o, i, j]` is the sum over t of `x[o, indices[t, i], j] * weights[t, i]`, where t is below
    `counts[i]`, of zero elsewhere.
    """
    scalar = SCALARS[dtype]
    captured = [arguments.array(number).data for number in range(5)]
    outer, *sizes = (arguments.integer(number) for number in range(5, 10))
    results, inner, taps = sizes[1:]
    grain = steps_worth(b, inner * taps)
    with b.parallel(outer * results, grain, *captured, *sizes, unlock=True) as (c, begin, end, inside):
        out, x, indices, weights, counts, size, results_, inner_, taps_ = inside
        with c.loop(begin // results_, (end + results_ - 1) // results_) as slice_:
            start = slice_ * results_
            source = c.at(x, scalar, slice_ * size * inner_)
            with c.loop(c.larger(begin - start, 0), c.smaller(end - start, results_)) as result:
                target = c.at(out, scalar, (start + result) * inner_)

                def part(tap: Value | int, column: Value, lanes: int, result: Value = result) -> Value:
                    place = tap * results_ + result
                    line = c.at(source, scalar, c.load(indices, _INT64, place) * inner_)
                    value = c.load(line, scalar, column, lanes)
                    if weighted:
                        value = value * c.load(weights, scalar, place)
                    if counted:
                        value = c.select(c.integer(tap) < c.load(counts, _INT64, result), value, 0)
                    return value

                for column, lanes in c.lanes(0, inner_, 64 // scalar.size):
                    total = c.variable(scalar.compute, None, lanes)
                    total.value = part(0, column, lanes)
                    with c.loop(1, taps_) as tap:
                        total.add(part(tap, column, lanes))
                    c.store(target, scalar, column, total.value)
