"""Distances between the rows of matrices, all with all: each difference is made and measured in registers."""

from __future__ import annotations

from collections.abc import Callable

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..machine.engine import engine
from ..rows.shared import rows_per_share
from ..types import SCALARS

_TOGETHER = 4
"""So many rows of the second matrix meet a row of the first at a time: their sums do not wait for one another."""

_Joined = Callable[[Builder, Value, Value], Value]
NORMS: dict[str, _Joined] = {
    "1": lambda c, total, difference: total + c.abs(difference),
    "2": lambda c, total, difference: c.fma(difference, difference, total),
    "inf": lambda c, total, difference: c.maximum(total, c.abs(difference)),
}
"""What a further difference makes of what was found so far."""


@kernel
def distances(b: Builder, arguments: Arguments, dtype: str, norm: str, pairs: bool) -> None:
    """(out, x, y): out[i, j] = the norm of x[i] - y[j]; with `pairs` those with j > i alone, one after the other."""
    out, x, y = (arguments.array(number) for number in range(3))
    scalar, width = SCALARS[dtype], engine().register_bytes // SCALARS[dtype].size
    rows, others, length = x.size(0), y.size(0), x.size(1)
    grain = rows_per_share(b, others * length)
    shares = b.parallel(rows, grain, out.data, x.data, y.data, others, length, unlock=True)
    with shares as (c, begin, end, (out_, x_, y_, others_, length_)), c.loop(begin, end) as row:
        line = c.at(x_, scalar, row * length_)
        start = row + 1 if pairs else c.integer(0)
        # what stands before the first of this row
        before = row * others_ - (row * start // 2 + start if pairs else 0)
        whole = start + (others_ - start) // _TOGETHER * _TOGETHER
        for together, first, last in ((_TOGETHER, start, whole), (1, whole, others_)):
            with c.loop(first, last, together) as other:
                lines = [c.at(y_, scalar, (other + number) * length_) for number in range(together)]
                found = [[c.variable(scalar.compute, 0.0, lanes) for _ in lines] for lanes in (width, 1)]
                for place, lanes in c.lanes(0, length_, width):
                    value = c.load(line, scalar, place, lanes)
                    for total, against in zip(found[lanes == 1], lines, strict=True):
                        difference = value - c.load(against, scalar, place, lanes)
                        total.value = NORMS[norm](c, total.value, difference)
                for number, (many, one) in enumerate(zip(*found, strict=True)):
                    if norm == "inf":
                        result = c.maximum(c.fold(many.value, c.maximum), one.value)
                    else:
                        result = c.total(many.value) + one.value
                    c.store(out_, scalar, before + other + number, c.sqrt(result) if norm == "2" else result)
