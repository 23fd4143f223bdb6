"""linspace: numbers at equal distances, counted from the nearer end."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder, Value
from ..ir import ir
from ..kernel import kernel
from ..shares import ELEMENTS
from ..types import F64, I64, SCALARS

_WIDTH = 8


@kernel
def spaced(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, count, first, last), at least two.

    The ends and their distance are numbers of the dtype. In float64 products and sums are rounded once; in float32 they
    are those of float64, rounded to float32.
    """
    scalar = SCALARS[dtype]
    count = arguments.integer(1)
    first, last = (b.convert(arguments.float64(number), scalar.compute) for number in (2, 3))
    step = (last - first) / b.convert(count - 1, scalar.compute)
    captured = [arguments.array(0).data, count, *[b.convert(each, F64) for each in (first, last, step)]]
    with b.parallel(count, ELEMENTS, *captured, unlock=True) as (c, begin, end, inside):
        out, count, first, last, step = inside
        half = c.smaller(c.larger(count // 2, begin), end)

        def write(position: Value, lanes: int, upper: bool) -> None:
            place = c.splat(count - 1 - position if upper else position, lanes)
            if lanes > 1:
                each = Value(c, ir.Constant(ir.VectorType(I64, lanes), list(range(lanes))))
                place = place - each if upper else place + each
            distance, origin, pace = c.convert(place, F64), last if upper else first, -step if upper else step
            number = c.fma(distance, pace, origin) if scalar.compute == F64 else distance * pace + origin
            c.store(out, scalar, position, c.convert(number, scalar.compute))

        for position, lanes in c.lanes(begin, half, _WIDTH):
            write(position, lanes, False)
        for position, lanes in c.lanes(half, end, _WIDTH):
            write(position, lanes, True)
