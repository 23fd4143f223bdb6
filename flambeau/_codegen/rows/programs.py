"""softmax, normalisations and their derivatives, each described once for all devices."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..expr import Expr
from ..row_program import COLUMN, ROW, RowProgram, RowTrace

# The dtypes are those of arrays. `wide` is the type in which a device keeps the sums of rows.


@cache
def softmax(dtype: str, logarithm: bool, wide: str | None = None, safe: bool = False) -> RowProgram:
    """(x) -> out. `safe`: zeros where all elements of a row are -inf."""
    rows = RowTrace(dtype, wide)
    x = rows.load("x")
    top: Any = rows.largest(x)
    if safe:
        top = np.maximum(top, np.finfo(np.float64 if dtype == "float64" else np.float32).min)
    apart = x - top
    powers = np.exp(apart)
    total: Any = rows.sum(powers)
    if safe:
        total = np.maximum(total, 1)  # as it is, unless all powers are zero: that of the largest element is 1
    rows.store("out", apart - rows.narrow(np.log(total)) if logarithm else powers * rows.narrow(1 / total))
    return rows.finished()


@cache
def softmax_backward(dtype: str, logarithm: bool, wide: str | None = None) -> RowProgram:
    """(grad, result) -> of_x."""
    rows = RowTrace(dtype, wide)
    grad, result = rows.load("grad"), rows.load("result")
    total = rows.narrow(rows.sum(grad if logarithm else grad * result))
    rows.store("of_x", grad - np.exp(result) * total if logarithm else (grad - total) * result)
    return rows.finished()


@cache
def log_total(dtype: str, wide: str | None = None) -> RowProgram:
    """(x) -> top, shift: what is to be taken from an element for the logarithm of its softmax; one after the other."""
    rows = RowTrace(dtype, wide)
    x = rows.load("x")
    top = rows.largest(x)
    rows.store("top", top, rows.wide.name, ROW)
    rows.store("shift", np.log(rows.sum(np.exp(x - top))), rows.wide.name, ROW)
    return rows.finished()


@cache
def logsumexp(dtype: str, wide: str | None = None) -> RowProgram:
    """(x) -> out: the logarithm of the sum of a row's exponentials; where the largest element is infinite, that."""
    rows = RowTrace(dtype, wide)
    x = rows.load("x")
    top = rows.largest(x)
    total = top + rows.narrow(np.log(rows.sum(np.exp(x - top))))
    rows.store("out", np.where(abs(top) == np.inf, top, total), dtype, ROW)
    return rows.finished()


@cache
def cosine(dtype: str, wide: str | None = None) -> RowProgram:
    """(x, y; eps) -> out: the cosine of the angle between two rows; lengths below eps count as eps."""
    rows = RowTrace(dtype, wide)
    least = rows.narrow(rows.argument(0))

    def unit(row: Expr) -> Expr:
        found: Expr = row / np.maximum(rows.narrow(np.sqrt(rows.sum(row * row))), least)
        return found

    rows.store("out", rows.narrow(rows.sum(unit(rows.load("x")) * unit(rows.load("y")))), dtype, ROW)
    return rows.finished()


def _deviation(rows: RowTrace, x: Expr, centre: bool) -> tuple[Expr | None, Expr, Expr]:
    """The mean of a row, elements less it, and 1 / their deviation; the squares are those of differences."""
    mean = rows.narrow(rows.mean(x)) if centre else None
    rest = x if mean is None else x - mean
    return mean, rest, rows.narrow(1 / np.sqrt(rows.mean(rest * rest) + rows.argument(0)))


@cache
def statistics(dtype: str, wide: str | None = None) -> RowProgram:
    """(x; eps): the mean and 1 / deviation of a row are handed on."""
    rows = RowTrace(dtype, wide)
    mean, _, rstd = _deviation(rows, rows.load("x"), True)
    assert mean is not None
    return rows.finished((mean, rstd))


@cache
def norm(
    dtype: str,
    parameters: str,
    kept: str,
    weighted: bool,
    biased: bool,
    centre: bool,
    wide: str | None = None,
    alone: bool = False,
) -> RowProgram:
    """(x, weight, bias; eps) -> mean, rstd, out: without `centre` there is no mean, which is rms_norm.

    `alone`: out and nothing else, for those who do not differentiate.
    """
    rows = RowTrace(dtype, wide)
    mean, rest, rstd = _deviation(rows, rows.load("x"), centre)
    if mean is not None and not alone:
        rows.store("mean", mean, kept, ROW)
    if not alone:
        rows.store("rstd", rstd, kept, ROW)
    value = rest * rstd
    weight = rows.load("weight", parameters, COLUMN) if weighted else None
    bias = rows.load("bias", parameters, COLUMN) if biased else None
    if weight is not None and bias is not None:
        value = rows.fused(value, weight, bias)
    elif weight is not None:
        value = value * weight
    elif bias is not None:
        value = value + bias
    rows.store("out", value)
    return rows.finished()


@cache
def norm_backward(
    dtype: str,
    parameters: str,
    kept: str,
    weighted: bool,
    of_input: bool,
    of_parameters: bool,
    centre: bool,
    wide: str | None = None,
) -> RowProgram:
    """(grad, x, mean, rstd, weight) -> of_x, of_weight, of_bias, those that are wanted; without `centre` no of_bias."""
    rows = RowTrace(dtype, wide)
    grad, x = rows.load("grad"), rows.load("x")
    rstd = rows.load("rstd", kept, ROW)
    standard = (x - rows.load("mean", kept, ROW) if centre else x) * rstd
    if of_input:
        value = grad * rows.load("weight", parameters, COLUMN) if weighted else grad
        slope = rows.narrow(rows.mean(value * standard))
        rest = value - rows.narrow(rows.mean(value)) if centre else value
        rows.store("of_x", (rest - standard * slope) * rstd)
    if of_parameters:
        rows.store("of_weight", grad * standard, parameters, COLUMN)
        if centre:
            rows.store("of_bias", grad, parameters, COLUMN)
    return rows.finished()


@cache
def norm_slopes(dtype: str, kept: str, centre: bool, wide: str | None = None) -> RowProgram:
    """(grad, x, rstd, mean) -> out: what each element adds to the gradient of its column's weight."""
    rows = RowTrace(dtype, wide)
    grad, x = rows.load("grad"), rows.load("x")
    rstd = rows.load("rstd", kept, ROW)
    rows.store("out", grad * ((x - rows.load("mean", kept, ROW) if centre else x) * rstd))
    return rows.finished()
