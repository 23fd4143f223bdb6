"""Kernels of batch_norm: the statistics are those of a channel over all samples and places.

There are two layouts: planes, where each sample has its channels one after the other (N, C, S), and lines, where the
channels of each place lie side by side (M, C), as in matrices and with channels last.
"""

from __future__ import annotations

from collections.abc import Callable

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..shares import ELEMENTS, steps_worth
from ..types import F64, SCALARS, Scalar
from .shared import LINES, column_total, rounded, rows_per_share, steps, totals, wide_of, width_of

_Terms = Callable[[Value, Value, int], list[Value]]


class _Kinds:
    """The types that a kernel's arrays have."""

    def __init__(self, dtype: str, parameters: str, kept: str) -> None:
        self.x = SCALARS[dtype]
        self.parameters = SCALARS[parameters]
        self.kept = SCALARS[kept]
        self.wide = wide_of(self.x)

    def kept_statistics(
        self, c: Builder, mean: Value, variance: Value, count: Value, eps: Value
    ) -> tuple[Value, Value, Value]:
        """Mean, 1 / deviation and variance, the first two as they are kept: what derivatives see is what is used."""
        if self.kept.name == "bfloat16":  # PyTorch has the sum of the squares in bfloat16 too
            spread = rounded(c, c.convert(variance * count, self.x.compute), self.kept)
            spread = rounded(c, spread / c.convert(count, self.x.compute), self.kept)
            variance = c.convert(spread, F64)
        rstd = c.convert(1.0 / c.sqrt(variance + eps), self.x.compute)
        return rounded(c, mean, self.kept), rounded(c, rstd, self.kept), c.convert(variance, self.x.compute)

    def of_evaluation(self, c: Builder, variance: Value, eps: Value) -> Value:
        """1 / deviation from a running variance."""
        return c.convert(1.0 / c.sqrt(c.convert(variance, F64) + eps), self.x.compute)


@kernel
def batch_norm_planes(
    b: Builder,
    arguments: Arguments,
    dtype: str,
    parameters: str,
    kept: str,
    weighted: bool,
    biased: bool,
    training: bool,
) -> None:
    """(out, x, mean, rstd, variance, weight, bias, samples, channels, places, eps).

    In evaluation `mean` and `variance` are the running ones; `mean`, `rstd` and, as float32 or float64, `variance` are
    results in training.
    """
    kinds = _Kinds(dtype, parameters, kept)
    scalar = kinds.x
    pointers = [arguments.array(number).data for number in range(7)]
    sizes = [arguments.integer(number) for number in (7, 8, 9)]
    eps = arguments.float64(10)
    share = rows_per_share(b, sizes[0] * sizes[2])
    with b.parallel(sizes[1], share, *pointers, *sizes, eps, unlock=True) as (c, begin, end, inside):
        out, x, mean, rstd, variance, weight, bias, samples, channels, places, eps = inside
        with c.loop(begin, end) as channel:
            first = channel * places
            step = channels * places
            if training:
                count = c.convert(samples * places, F64)
                width = width_of(scalar)
                total = c.variable(F64, 0.0)
                with c.loop(0, samples) as sample:
                    plane = c.at(x, scalar, first + sample * step)
                    total.add(totals(c, 0, places, width, scalar, 1, lambda i, n: [c.load(plane, scalar, i, n)])[0])

                average = c.convert(total.value / count, scalar.compute)
                squares = c.variable(F64, 0.0)
                with c.loop(0, samples) as sample:
                    plane = c.at(x, scalar, first + sample * step)

                    def square(i: Value, n: int) -> list[Value]:
                        rest = c.load(plane, scalar, i, n) - average
                        return [rest * rest]

                    squares.add(totals(c, 0, places, width, scalar, 1, square)[0])
                middle, scale, spread = kinds.kept_statistics(c, average, squares.value / count, count, eps)
                c.store(mean, kinds.kept, channel, middle)
                c.store(rstd, kinds.kept, channel, scale)
                c.store(variance, kinds.wide, channel, spread)
            else:
                middle = c.load(mean, kinds.kept, channel)
                scale = kinds.of_evaluation(c, c.load(variance, kinds.kept, channel), eps)
            if weighted:
                scale = scale * c.load(weight, kinds.parameters, channel)
            shift = c.load(bias, kinds.parameters, channel) if biased else None
            with c.loop(0, samples) as sample:
                plane = c.at(x, scalar, first + sample * step)
                target = c.at(out, scalar, first + sample * step)
                for i, lanes in c.lanes(0, places, width_of(scalar)):
                    value = c.load(plane, scalar, i, lanes) - middle
                    c.store(target, scalar, i, value * scale if shift is None else c.fma(value, scale, shift))


@kernel
def batch_norm_lines(
    b: Builder,
    arguments: Arguments,
    dtype: str,
    parameters: str,
    kept: str,
    weighted: bool,
    biased: bool,
    training: bool,
) -> None:
    """(out, x, mean, rstd, variance, weight, bias, work, lines, channels, eps): as for planes.

    `work` has room for two lines in the type of `variance`, and for one for each block of lines.
    """
    kinds = _Kinds(dtype, parameters, kept)
    scalar, wide = kinds.x, kinds.wide
    out, x, mean, rstd, variance, weight, bias, work = (arguments.array(number).data for number in range(8))
    lines, channels, eps = arguments.integer(8), arguments.integer(9), arguments.float64(10)
    width = width_of(scalar)
    means, scales = work, b.at(work, wide, channels)
    partial = b.at(work, wide, channels * 2)
    if training:
        count = b.convert(lines, F64)
        _block_sums(b, partial, x, means, lines, channels, scalar, wide, False)
        for i, lanes in b.lanes(0, channels, width):
            total = column_total(b, b.at(partial, wide, i), wide, channels, _blocks(lines), lanes)
            b.store(means, wide, i, b.convert(total / count, wide.compute))
        _block_sums(b, partial, x, means, lines, channels, scalar, wide, True)
        with b.loop(0, channels) as i:
            squares = column_total(b, b.at(partial, wide, i), wide, channels, _blocks(lines), 1)
            middle, scale, spread = kinds.kept_statistics(b, b.load(means, wide, i), squares / count, count, eps)
            b.store(mean, kinds.kept, i, middle)
            b.store(rstd, kinds.kept, i, scale)
            b.store(variance, wide, i, spread)
            b.store(means, wide, i, middle)
            b.store(scales, wide, i, scale * b.load(weight, kinds.parameters, i) if weighted else scale)
    else:
        with b.loop(0, channels) as i:
            scale = kinds.of_evaluation(b, b.load(variance, kinds.kept, i), eps)
            b.store(means, wide, i, b.load(mean, kinds.kept, i))
            b.store(scales, wide, i, scale * b.load(weight, kinds.parameters, i) if weighted else scale)
    share = rows_per_share(b, channels)
    with b.parallel(lines, share, out, x, means, scales, bias, channels, unlock=True) as (c, begin, end, inside):
        out, x, means, scales, bias, channels = inside
        with c.loop(begin, end) as line:
            source, target = c.at(x, scalar, line * channels), c.at(out, scalar, line * channels)
            for i, lanes in steps(c, 0, channels, width, width_of(scalar, 1)):
                value = c.load(source, scalar, i, lanes) - c.load(means, wide, i, lanes)
                scale = c.load(scales, wide, i, lanes)
                if biased:
                    c.store(target, scalar, i, c.fma(value, scale, c.load(bias, kinds.parameters, i, lanes)))
                else:
                    c.store(target, scalar, i, value * scale)


def _blocks(lines: Value) -> Value:
    return (lines + (LINES - 1)) // LINES


def _block_sums(
    b: Builder,
    partial: Value,
    x: Value,
    means: Value,
    lines: Value,
    channels: Value,
    scalar: Scalar,
    wide: Scalar,
    squares: bool,
) -> None:
    """For each block of lines the sums of each channel, or those of the squares around the means."""
    share = steps_worth(b, channels, ELEMENTS // (2 * LINES))
    captured = partial, x, means, lines, channels
    with b.parallel(_blocks(lines), share, *captured, unlock=True) as (c, begin, end, inside):
        partial, x, means, lines, channels = inside
        with c.loop(begin, end) as block:
            last = c.smaller((block + 1) * LINES, lines)

            def terms(line: Value, i: Value, lanes: int) -> list[Value]:
                value = c.load(x, scalar, line * channels + i, lanes)
                if squares:
                    value = value - c.load(means, wide, i, lanes)
                    value = value * value
                return [value]

            _add_lines(c, block * LINES, last, channels, wide, [c.at(partial, wide, block * channels)], terms)


def _add_lines(
    c: Builder, begin: Value, end: Value, channels: Value, wide: Scalar, sums: list[Value], terms: _Terms
) -> None:
    """Sums over lines of each channel, written to `sums`. Four lines at a time: memory is read along the lines."""
    for i, lanes in steps(c, 0, channels, width_of(wide), width_of(wide, 1)):
        for total in sums:
            c.store(total, wide, i, c.splat(c.constant(wide.compute, 0.0), lanes))
    whole = begin + (end - begin) // 4 * 4
    for first, stop, count in ((begin, whole, 4), (whole, end, 1)):
        with c.loop(first, stop, count) as line:
            for i, lanes in steps(c, 0, channels, width_of(wide), width_of(wide, 1)):
                rows = [terms(line + number, i, lanes) for number in range(count)]
                for total, each in zip(sums, zip(*rows, strict=True), strict=True):
                    added = (each[0] + each[1]) + (each[2] + each[3]) if count == 4 else each[0]
                    c.store(total, wide, i, c.load(total, wide, i, lanes) + added)


@kernel
def batch_norm_planes_backward(
    b: Builder,
    arguments: Arguments,
    dtype: str,
    parameters: str,
    kept: str,
    weighted: bool,
    training: bool,
    of_input: bool,
) -> None:
    """(of_x, of_weight, of_bias, grad, x, mean, rstd, weight, samples, channels, places, eps).

    In evaluation `rstd` is the running variance.
    """
    kinds = _Kinds(dtype, parameters, kept)
    scalar = kinds.x
    pointers = [arguments.array(number).data for number in range(8)]
    sizes = [arguments.integer(number) for number in (8, 9, 10)]
    eps = arguments.float64(11)
    share = rows_per_share(b, sizes[0] * sizes[2])
    with b.parallel(sizes[1], share, *pointers, *sizes, eps, unlock=True) as (c, begin, end, inside):
        of_x, of_weight, of_bias, grad, x, mean, rstd, weight, samples, channels, places, eps = inside
        with c.loop(begin, end) as channel:
            first = channel * places
            step = channels * places
            middle = c.load(mean, kinds.kept, channel)
            scale = c.load(rstd, kinds.kept, channel)
            scale = scale if training else kinds.of_evaluation(c, scale, eps)
            along, total = c.variable(F64, 0.0), c.variable(F64, 0.0)
            with c.loop(0, samples) as sample:
                plane = c.at(x, scalar, first + sample * step)
                coming = c.at(grad, scalar, first + sample * step)

                def terms(i: Value, n: int) -> list[Value]:
                    value = c.load(coming, scalar, i, n)
                    return [value * (c.load(plane, scalar, i, n) - middle), value]

                sums = totals(c, 0, places, width_of(scalar), scalar, 2, terms)
                along.add(sums[0])
                total.add(sums[1])
            of_scale = along.value * c.convert(scale, F64)
            c.store(of_weight, kinds.parameters, channel, c.convert(of_scale, scalar.compute))
            c.store(of_bias, kinds.parameters, channel, c.convert(total.value, scalar.compute))
            if of_input:
                factor = scale * c.load(weight, kinds.parameters, channel) if weighted else scale
                count = c.convert(samples * places, F64)
                shift = c.convert(total.value / count, scalar.compute)
                slope = c.convert(of_scale / count, scalar.compute) * scale
                with c.loop(0, samples) as sample:
                    place = first + sample * step
                    plane, coming, target = (c.at(each, scalar, place) for each in (x, grad, of_x))
                    for i, lanes in c.lanes(0, places, width_of(scalar)):
                        value = c.load(coming, scalar, i, lanes)
                        if training:
                            value = value - shift - (c.load(plane, scalar, i, lanes) - middle) * slope
                        c.store(target, scalar, i, value * factor)


@kernel
def batch_norm_lines_backward(
    b: Builder,
    arguments: Arguments,
    dtype: str,
    parameters: str,
    kept: str,
    weighted: bool,
    training: bool,
    of_input: bool,
) -> None:
    """(of_x, of_weight, of_bias, grad, x, mean, rstd, weight, work, lines, channels, eps): as for planes.

    `work` has room for four lines, and for two for each block of lines, in float32, or in float64 for float64.
    """
    kinds = _Kinds(dtype, parameters, kept)
    scalar, wide = kinds.x, kinds.wide
    of_x, of_weight, of_bias, grad, x, mean, rstd, weight, work = (arguments.array(number).data for number in range(9))
    lines, channels, eps = arguments.integer(9), arguments.integer(10), arguments.float64(11)
    width = width_of(scalar, 2)
    means, scales, shifts, slopes, partial = (b.at(work, wide, channels * number) for number in range(5))
    with b.loop(0, channels) as i:
        b.store(means, wide, i, b.load(mean, kinds.kept, i))
    share = steps_worth(b, channels, ELEMENTS // (2 * LINES))
    captured = partial, x, grad, means, lines, channels
    with b.parallel(_blocks(lines), share, *captured, unlock=True) as (c, begin, end, inside):
        part, source, coming, middles, count, step = inside
        with c.loop(begin, end) as block:
            last = c.smaller((block + 1) * LINES, count)

            def terms(line: Value, i: Value, lanes: int) -> list[Value]:
                value = c.load(coming, scalar, line * step + i, lanes)
                rest = c.load(source, scalar, line * step + i, lanes) - c.load(middles, wide, i, lanes)
                return [value * rest, value]

            along = c.at(part, wide, block * 2 * step)
            _add_lines(c, block * LINES, last, step, wide, [along, c.at(along, wide, step)], terms)
    elements = b.convert(lines, F64)
    with b.loop(0, channels) as i:
        scale = b.load(rstd, kinds.kept, i)
        scale = scale if training else kinds.of_evaluation(b, scale, eps)
        along, total = (
            column_total(b, b.at(partial, wide, i + channels * number), wide, channels * 2, _blocks(lines), 1)
            for number in range(2)
        )
        of_scale = along * b.convert(scale, F64)
        b.store(of_weight, kinds.parameters, i, b.convert(of_scale, scalar.compute))
        b.store(of_bias, kinds.parameters, i, b.convert(total, scalar.compute))
        b.store(shifts, wide, i, b.convert(total / elements, scalar.compute))
        b.store(slopes, wide, i, b.convert(of_scale / elements, scalar.compute) * scale)
        b.store(scales, wide, i, scale * b.load(weight, kinds.parameters, i) if weighted else scale)
    if of_input:
        given = of_x, x, grad, means, scales, shifts, slopes, channels
        with b.parallel(lines, rows_per_share(b, channels), *given, unlock=True) as (c, begin, end, inside):
            target, source, coming, middles, factors, shifted, slanted, step = inside
            with c.loop(begin, end) as line:
                row = line * step
                for i, lanes in steps(c, 0, step, width, width_of(scalar, 1)):
                    value = c.load(coming, scalar, row + i, lanes)
                    if training:
                        rest = c.load(source, scalar, row + i, lanes) - c.load(middles, wide, i, lanes)
                        value = value - c.load(shifted, wide, i, lanes) - rest * c.load(slanted, wide, i, lanes)
                    c.store(target, scalar, row + i, value * c.load(factors, wide, i, lanes))


@kernel
def move_statistics(b: Builder, arguments: Arguments, running: str, mean: str, variance: str) -> None:
    """(running_mean, running_var, mean, variance, channels, momentum, factor): a step of two exponential averages.

    `factor` makes the variance of the batch one without bias.
    """
    scalar = SCALARS[running]
    channels = arguments.integer(4)
    compute = scalar.compute
    momentum, factor = (b.convert(arguments.float64(number), compute) for number in (5, 6))
    rest = b.convert(1.0 - arguments.float64(5), compute)
    for number, kind in enumerate((mean, variance)):
        averages, news = arguments.array(number).data, arguments.array(number + 2).data
        for i, lanes in b.lanes(0, channels, width_of(scalar, 2)):
            new = b.convert(b.load(news, SCALARS[kind], i, lanes), compute)
            new = new * factor if number else new
            b.store(averages, scalar, i, b.load(averages, scalar, i, lanes) * rest + new * momentum)
