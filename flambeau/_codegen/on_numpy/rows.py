"""Kernels that go along rows, run by NumPy: see `rows/`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..build import Value
from ..functions.exponential import exp_of_difference
from ..lower import constant, operation
from ..row_program import COLUMN, ELEMENT, ROW, RowProgram
from ..rows.programs import statistics
from ..types import F64, SCALARS, Scalar
from .builder import Evaluator
from .fused import fma
from .sums import column_totals, in_order, largest, totals

Array = Any


def _width(scalar: Scalar) -> int:
    return 8 if scalar.compute == F64 else 16


def _evaluated(program: RowProgram, arrays: Sequence[Array], numbers: Sequence[float], dim: int) -> dict[int, Value]:
    """All steps of a program, on arrays whose rows are along `dim`, the last one or that before."""
    b = Evaluator()
    scalar = next(SCALARS[place.dtype] for place in program.places if place.has == ELEMENT)
    model = next(array for array, place in zip(arrays, program.places, strict=True) if place.has == ELEMENT)
    length = model.shape[dim]
    values: dict[int, Value] = {}
    for number, (name, type_name, *operands) in enumerate(program.steps):
        kind = SCALARS[type_name]
        if name == "load":
            value = b.load_from(arrays[operands[0]], SCALARS[program.places[operands[0]].dtype])
        elif name == "number":
            value = b.constant(F64, numbers[operands[0]])
        elif name == "length":
            value = b.constant(kind.compute, length)
        elif name == "sum":
            terms = np.broadcast_to(values[operands[0]].ir.array, model.shape)
            if dim == model.ndim - 1:
                total = totals(terms, _width(scalar))[..., None]
            else:
                total = column_totals(terms)[:, None]
            value = b.convert(b.given(total, F64), kind.compute)
        elif name == "largest":
            terms = np.broadcast_to(values[operands[0]].ir.array, model.shape)
            value = b.given(largest(terms, dim), kind.compute)
        elif name == "constant":
            value = constant(b, type_name, operands[0])
        elif name == "cast":
            value = b.convert(values[operands[0]], kind.compute)
        elif name == "exp":
            value = exp_of_difference(b, values[operands[0]])
        else:
            value = operation(name)(b, *[values[each] for each in operands])
        values[number] = value
    return values


def _stored(program: RowProgram, arrays: Sequence[Array], values: dict[int, Value]) -> None:
    b = Evaluator()
    for place, step in program.stores:
        scalar = SCALARS[program.places[place].dtype]
        b.store_into(arrays[place], scalar, b.convert(values[step], scalar.compute))


def rows_one_by_one(program: RowProgram) -> Callable[..., Array]:
    """A program over rows that lie one behind the other, as a function `(*places, *numbers, rows, length)`."""
    count, numbers = len(program.places), program.numbers()

    def run(*arguments: Any) -> Array:
        rows, length = arguments[-2:]
        shapes = {ELEMENT: (rows, length), COLUMN: (length,), ROW: (rows, 1)}
        arrays = [each.reshape(shapes[place.has]) for each, place in zip(arguments, program.places, strict=False)]
        with np.errstate(all="ignore"):
            _stored(program, arrays, _evaluated(program, arrays, arguments[count : count + numbers], 1))
        return arguments[0]

    return run


def rows_in_tiles(program: RowProgram) -> Callable[..., Array]:
    """A program over the middle one of three dimensions, as a function `(*places, outer, length, inner)`."""
    count = len(program.places)

    def run(*arguments: Any) -> Array:
        arrays = [each.reshape(arguments[-3:]) for each in arguments[:count]]
        with np.errstate(all="ignore"):
            _stored(program, arrays, _evaluated(program, arrays, (), 1))
        return arguments[0]

    return run


def sums_in_order(dtype: str, rows: bool) -> Callable[..., Array]:
    """(out, x, outer, length, inner): sums along the middle dimension, in float64, in one order for any other sizes."""

    def run(out: Array, x: Array, outer: int, length: int, inner: int) -> Array:
        wide = x.reshape(outer, length, inner).astype(np.float64)
        with np.errstate(all="ignore"):
            found = totals(wide[..., 0], 16) if rows else in_order(wide, 1)
            out[...] = found.astype(x.dtype).reshape(out.shape)
        return out

    return run


# ----- groups of channels ---------------------------------------------------------------------------------------------


def group_norm_rows(dtype: str, parameters: str, kept: str, weighted: bool, biased: bool) -> Callable[..., Array]:
    """(out, x, mean, rstd, weight, bias, rows, groups, members, places, eps): a row is a group of one sample."""
    scalar, parameter, statistic = SCALARS[dtype], SCALARS[parameters], SCALARS[kept]
    program = statistics(dtype, "float64")

    def run(*arguments: Any) -> Array:
        out, x, mean, rstd, weight, bias, rows, groups, members, places, eps = arguments
        b = Evaluator()
        with np.errstate(all="ignore"):
            values = _evaluated(program, [x.reshape(rows, members * places)], [eps], 1)
            middle, deviation = (values[number] for number in program.results)
            b.store_into(mean.reshape(rows, 1), statistic, b.convert(middle, statistic.compute))
            b.store_into(rstd.reshape(rows, 1), statistic, b.convert(deviation, statistic.compute))
            centre, scale = (each.ir.array[:, :, None] for each in (middle, deviation))
            if weighted:
                scale = scale * _of_channels(b, weight, parameter, rows, groups, members)
            elements = b.load_from(x.reshape(rows, members, places), scalar).ir.array - centre
            if biased:
                shift = _of_channels(b, bias, parameter, rows, groups, members)
                elements = fma(elements, np.broadcast_to(scale, elements.shape), np.broadcast_to(shift, elements.shape))
            else:
                elements = elements * scale
            b.store_into(out.reshape(rows, members, places), scalar, b.given(elements, scalar.compute))
        return out

    return run


def _of_channels(b: Evaluator, array: Array, parameter: Scalar, rows: int, groups: int, members: int) -> Array:
    """A number for each channel, as (rows, members, 1)."""
    values = b.load_from(array.reshape(groups, members), parameter).ir.array
    return np.tile(values, (rows // groups, 1))[:, :, None]


def group_norm_rows_backward(
    dtype: str, parameters: str, kept: str, weighted: bool, of_input: bool
) -> Callable[..., Array]:
    """(of_x, of_weight, of_bias, partial, grad, x, mean, rstd, weight, rows, groups, members, places).

    Sums over samples are left to the caller, who makes them of `partial`.
    """
    scalar, parameter, statistic = SCALARS[dtype], SCALARS[parameters], SCALARS[kept]

    def run(*arguments: Any) -> Array:
        of_x, _, _, partial, grad, x, mean, rstd, weight, rows, groups, members, places = arguments
        b = Evaluator()
        with np.errstate(all="ignore"):
            middle, deviation = (b.load_from(each.reshape(rows, 1, 1), statistic).ir.array for each in (mean, rstd))
            shape = rows, members, places
            coming, plane = (b.load_from(each.reshape(shape), scalar).ir.array for each in (grad, x))
            apart = plane - middle
            along, total = totals(coming * apart, _width(scalar)), totals(coming, _width(scalar))
            along = along * deviation[:, :, 0].astype(np.float64)
            partial.reshape(2, rows, members)[0] = along
            partial.reshape(2, rows, members)[1] = total
            factors = _of_channels(b, weight, parameter, rows, groups, members) if weighted else None
            if factors is not None:
                wide = factors[:, :, 0].astype(np.float64)
                along, total = along * wide, total * wide
            if of_input:
                count = np.float64(members * places)
                compute = plane.dtype
                shift = (in_order(total, 1) / count).astype(compute)[:, None, None]
                slope = (in_order(along, 1) / count).astype(compute)[:, None, None] * deviation
                value = coming if factors is None else coming * factors
                value = (value - shift - apart * slope) * deviation
                b.store_into(of_x.reshape(shape), scalar, b.given(value, scalar.compute))
        return of_x

    return run
