"""Integrals that say how gamma numbers move with their shapes, by a rule of points and weights."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder
from ..functions import exp, expm1
from ..kernel import kernel
from ..shares import ELEMENTS
from ..types import SCALARS

_BYTES = 64


@kernel
def gamma_integrals(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, a, x, distance, side, width, points, weights, count, nodes).

    For each element the integral over w > 0 of (distance + w) exp(side a w - x expm1(side w)).
    """
    scalar = SCALARS[dtype]
    arrays = [arguments.array(number).data for number in range(8)]
    count, nodes = (arguments.integer(number) for number in (8, 9))
    with b.parallel(count, ELEMENTS // 128, *arrays, nodes, unlock=True) as (c, begin, end, inside):
        out, *operands, points, weights, nodes_ = inside
        for position, lanes in c.lanes(begin, end, _BYTES // scalar.size):
            a, x, distance, side, width = (c.load(each, scalar, position, lanes) for each in operands)
            total = c.variable(scalar.compute, 0.0, lanes)
            with c.loop(0, nodes_) as node:
                w = width * c.load(points, scalar, node)
                turned = side * w
                rise = exp(c, turned) - 1.0 if scalar.size == 8 else expm1(c, turned)
                value = (distance + w) * exp(c, a * turned - x * rise)
                total.add(value * c.load(weights, scalar, node))
            c.store(out, scalar, position, total.value * width)
