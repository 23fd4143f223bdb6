"""Kernels of normalisations whose statistics are those of a row: layer_norm and rms_norm."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..types import F64, SCALARS, Scalar
from .shared import column_total, rows_per_share, totals, wide_of, width_of


def statistics(c: Builder, x: Value, scalar: Scalar, length: Value, eps: Value, centre: bool) -> tuple[Value, Value]:
    """Mean (0 if not wanted) and 1 / deviation of a row, in float64: the squares are those of differences."""
    width = width_of(scalar)
    count = c.convert(length, F64)
    mean = c.constant(F64, 0.0)
    if centre:
        (total,) = totals(c, 0, length, width, scalar, 1, lambda i, lanes: [c.load(x, scalar, i, lanes)])
        mean = total / count
    near = c.convert(mean, scalar.compute)

    def square(i: Value, lanes: int) -> list[Value]:
        rest = c.load(x, scalar, i, lanes)
        rest = rest - near if centre else rest
        return [rest * rest]

    (squares,) = totals(c, 0, length, width, scalar, 1, square)
    return near, c.convert(1.0 / c.sqrt(squares / count + eps), scalar.compute)


@kernel
def layer_norm_rows(
    b: Builder,
    arguments: Arguments,
    dtype: str,
    parameters: str,
    kept: str,
    weighted: bool,
    biased: bool,
    centre: bool,
) -> None:
    """(out, x, mean, rstd, weight, bias, rows, length, eps): what is not there may be any array.

    Without `centre` the mean counts as 0, and is not written: rms_norm.
    """
    scalar, of_parameters, of_kept = SCALARS[dtype], SCALARS[parameters], SCALARS[kept]
    pointers = [arguments.array(number).data for number in range(6)]
    rows, length, eps = arguments.integer(6), arguments.integer(7), arguments.float64(8)
    with b.parallel(rows, rows_per_share(b, length), *pointers, length, eps, unlock=True) as (c, begin, end, inside):
        out, x, mean, rstd, weight, bias, length, eps = inside
        with c.loop(begin, end) as row:
            source, target = c.at(x, scalar, row * length), c.at(out, scalar, row * length)
            middle, scale = statistics(c, source, scalar, length, eps, centre)
            if centre:
                c.store(mean, of_kept, row, middle)
            c.store(rstd, of_kept, row, scale)
            for i, lanes in c.lanes(0, length, width_of(scalar)):
                value = c.load(source, scalar, i, lanes)
                value = (value - middle if centre else value) * scale
                if weighted and biased:
                    value = c.fma(value, c.load(weight, of_parameters, i, lanes), c.load(bias, of_parameters, i, lanes))
                elif weighted:
                    value = value * c.load(weight, of_parameters, i, lanes)
                elif biased:
                    value = value + c.load(bias, of_parameters, i, lanes)
                c.store(target, scalar, i, value)


@kernel
def layer_norm_rows_backward(
    b: Builder,
    arguments: Arguments,
    dtype: str,
    parameters: str,
    kept: str,
    weighted: bool,
    of_input: bool,
    of_parameters: bool,
    centre: bool,
) -> None:
    """(of_x, of_weight, of_bias, partial, grad, x, mean, rstd, weight, rows, length, chunk).

    The gradients of the parameters are added up over `chunk` rows at a time, then over such chunks. `partial` has room
    for two rows for each chunk, of float32, or of float64 for float64. Without `centre` there is no mean and no
    gradient of a bias.
    """
    scalar, parameter, statistic = SCALARS[dtype], SCALARS[parameters], SCALARS[kept]
    wide = wide_of(scalar)
    pointers = [arguments.array(number).data for number in range(9)]
    rows, length, chunk_size = arguments.integer(9), arguments.integer(10), arguments.integer(11)
    width = width_of(scalar, 2)
    chunks = (rows + chunk_size - 1) // chunk_size
    share = b.larger(rows_per_share(b, length) // chunk_size, 1)
    with b.parallel(chunks, share, *pointers, rows, length, chunk_size, unlock=True) as (c, begin, end, inside):
        of_x, _, _, partial, grad, x, mean, rstd, weight, rows_, length_, size = inside
        with c.loop(begin, end) as chunk:
            for_weight = c.at(partial, wide, chunk * 2 * length_)
            for_bias = c.at(for_weight, wide, length_)
            if of_parameters:
                for i, lanes in c.lanes(0, length_ * 2, width):
                    c.store(for_weight, wide, i, c.splat(c.constant(wide.compute, 0.0), lanes))
            with c.loop(chunk * size, c.smaller((chunk + 1) * size, rows_)) as row:
                place = row * length_
                source, coming, target = (c.at(pointer, scalar, place) for pointer in (x, grad, of_x))
                middle = c.load(mean, statistic, row) if centre else None
                scale = c.load(rstd, statistic, row)

                def standard(i: Value, lanes: int) -> Value:
                    value = c.load(source, scalar, i, lanes)
                    return (value if middle is None else value - middle) * scale

                def scaled(i: Value, lanes: int) -> Value:
                    value = c.load(coming, scalar, i, lanes)
                    return value * c.load(weight, parameter, i, lanes) if weighted else value

                shift = slope = None
                if of_input:
                    count = c.convert(length_, F64)

                    def terms(i: Value, lanes: int) -> list[Value]:
                        value = scaled(i, lanes)
                        along = value * standard(i, lanes)
                        return [along, value] if centre else [along]

                    sums = totals(c, 0, length_, width_of(scalar), scalar, 2 if centre else 1, terms)
                    slope = c.convert(sums[0] / count, scalar.compute)
                    shift = c.convert(sums[1] / count, scalar.compute) if centre else None
                for i, lanes in c.lanes(0, length_, width):
                    normal = standard(i, lanes)
                    if of_parameters:
                        value = c.load(coming, scalar, i, lanes)
                        c.store(for_weight, wide, i, c.fma(value, normal, c.load(for_weight, wide, i, lanes)))
                        if centre:
                            c.store(for_bias, wide, i, value + c.load(for_bias, wide, i, lanes))
                    if slope is not None:
                        value = scaled(i, lanes)
                        value = value - shift if shift is not None else value
                        c.store(target, scalar, i, (value - normal * slope) * scale)
    if of_parameters:
        of_weight, of_bias, partial = pointers[1], pointers[2], pointers[3]
        for number, result in enumerate((of_weight, of_bias) if centre else (of_weight,)):
            for i, lanes in b.lanes(0, length, width):
                total = column_total(b, b.at(partial, wide, i + length * number), wide, length * 2, chunks, lanes)
                b.store(result, parameter, i, b.convert(total, wide.compute))
