"""Kernels of group_norm: each sample's channels in groups, a group's elements one after the other."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..types import F64, SCALARS
from .one_by_one import OneRow
from .programs import statistics
from .shared import column_total, rows_per_share, totals, wide_of, width_of


@kernel
def group_norm_rows(
    b: Builder, arguments: Arguments, dtype: str, parameters: str, kept: str, weighted: bool, biased: bool
) -> None:
    """(out, x, mean, rstd, weight, bias, rows, groups, members, places, eps): a row is a group of one sample."""
    scalar, parameter, statistic = SCALARS[dtype], SCALARS[parameters], SCALARS[kept]
    pointers = [arguments.array(number).data for number in range(6)]
    rows, *sizes = (arguments.integer(number) for number in (6, 7, 8, 9))
    eps = arguments.float64(10)
    share = rows_per_share(b, sizes[1] * sizes[2])
    with b.parallel(rows, share, *pointers, *sizes, eps, unlock=True) as (c, begin, end, inside):
        out, x, mean, rstd, weight, bias, groups, members, places, eps = inside
        with c.loop(begin, end) as row:
            first = row * members
            middle, deviation = OneRow(c, statistics(dtype, "float64"), [x], [eps], members * places, row).run()
            c.store(mean, statistic, row, middle)
            c.store(rstd, statistic, row, deviation)
            with c.loop(0, members) as member:
                channel = row % groups * members + member
                scale = deviation * c.load(weight, parameter, channel) if weighted else deviation
                shift = c.load(bias, parameter, channel) if biased else None
                plane = c.at(x, scalar, (first + member) * places)
                target = c.at(out, scalar, (first + member) * places)
                for i, lanes in c.lanes(0, places, width_of(scalar)):
                    value = c.load(plane, scalar, i, lanes) - middle
                    c.store(target, scalar, i, value * scale if shift is None else c.fma(value, scale, shift))


@kernel
def group_norm_rows_backward(
    b: Builder, arguments: Arguments, dtype: str, parameters: str, kept: str, weighted: bool, of_input: bool
) -> None:
    """(of_x, of_weight, of_bias, partial, grad, x, mean, rstd, weight, rows, groups, members, places).

    `partial` has room for two numbers for each channel of each sample, in float32, or in float64 for float64.
    """
    scalar, parameter, statistic = SCALARS[dtype], SCALARS[parameters], SCALARS[kept]
    wide = wide_of(scalar)
    pointers = [arguments.array(number).data for number in range(9)]
    rows, groups, members, places = (arguments.integer(number) for number in (9, 10, 11, 12))
    share = rows_per_share(b, members * places)
    with b.parallel(rows, share, *pointers, rows, groups, members, places, unlock=True) as (c, begin, end, inside):
        of_x, _, _, partial, grad, x, mean, rstd, weight, rows_, groups_, members_, places_ = inside
        width = width_of(scalar)
        with c.loop(begin, end) as row:
            first = row * members_
            middle, deviation = c.load(mean, statistic, row), c.load(rstd, statistic, row)
            along, total = c.variable(F64, 0.0), c.variable(F64, 0.0)
            with c.loop(0, members_) as member:
                plane, coming = (c.at(each, scalar, (first + member) * places_) for each in (x, grad))

                def terms(i: Value, n: int) -> list[Value]:
                    value = c.load(coming, scalar, i, n)
                    return [value * (c.load(plane, scalar, i, n) - middle), value]

                own_along, own_total = totals(c, 0, places_, width, scalar, 2, terms)
                own_along = own_along * c.convert(deviation, F64)
                c.store(partial, wide, first + member, c.convert(own_along, wide.compute))
                c.store(partial, wide, rows_ * members_ + first + member, c.convert(own_total, wide.compute))
                if weighted:
                    factor = c.convert(c.load(weight, parameter, row % groups_ * members_ + member), F64)
                    own_along, own_total = own_along * factor, own_total * factor
                along.add(own_along)
                total.add(own_total)
            if of_input:
                count = c.convert(members_ * places_, F64)
                shift = c.convert(total.value / count, scalar.compute)
                slope = c.convert(along.value / count, scalar.compute) * deviation
                with c.loop(0, members_) as member:
                    place = (first + member) * places_
                    plane, coming, target = (c.at(each, scalar, place) for each in (x, grad, of_x))
                    own = c.load(weight, parameter, row % groups_ * members_ + member) if weighted else None
                    for i, lanes in c.lanes(0, places_, width):
                        value = c.load(coming, scalar, i, lanes)
                        value = value if own is None else value * own
                        value = value - shift - (c.load(plane, scalar, i, lanes) - middle) * slope
                        c.store(target, scalar, i, value * deviation)
    channels = groups * members
    samples = rows // groups
    for number in (1, 2):
        for i, lanes in b.lanes(0, channels, width_of(scalar)):
            start = b.at(pointers[3], wide, i + channels * samples * (number - 1))
            added = column_total(b, start, wide, channels, samples, lanes)
            b.store(pointers[number], parameter, i, b.convert(added, wide.compute))
