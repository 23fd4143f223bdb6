"""Integrals that say how gamma numbers move with their shapes, by a rule of points and weights."""

from __future__ import annotations

from .arrays import Arguments
from .build import Builder
from .functions import exp
from .kernel import kernel
from .types import F64, float64

_GRAIN = 256
_WIDTH = 8


@kernel
def gamma_integrals(b: Builder, arguments: Arguments) -> None:
    """(out, a, x, distance, side, width, points, weights, count, nodes).

    For each element the integral over w > 0 of (distance + w) exp(side a w - x expm1(side w)).
    """
    arrays = [arguments.array(number).data for number in range(8)]
    count, nodes = (arguments.integer(number) for number in (8, 9))
    with b.parallel(count, _GRAIN, *arrays, nodes, unlock=True) as (c, begin, end, inside):
        out, *operands, points, weights, nodes_ = inside
        for position, lanes in c.lanes(begin, end, _WIDTH):
            a, x, distance, side, width = (c.load(each, float64, position, lanes) for each in operands)
            total = c.variable(F64, 0.0, lanes)
            with c.loop(0, nodes_) as node:
                w = width * c.load(points, float64, node)
                turned = side * w
                value = (distance + w) * exp(c, a * turned - x * (exp(c, turned) - 1.0))
                total.add(value * c.load(weights, float64, node))
            c.store(out, float64, position, total.value * width)
