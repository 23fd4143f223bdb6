"""Batch norm with given statistics, run by NumPy: see `rows/channel_norm.py`. Those of a batch are not portable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..types import F64, SCALARS, Scalar
from .builder import DTYPES, Evaluator
from .fused import fma
from .sums import LINES, column_totals, in_order, totals

Array = Any


class _Kinds:
    """The types that a kernel's arrays have."""

    def __init__(self, dtype: str, parameters: str, kept: str) -> None:
        self.x, self.parameters, self.kept = (SCALARS[each] for each in (dtype, parameters, kept))
        self.compute = DTYPES[self.x.compute]
        self.width = 8 if self.x.compute == F64 else 16

    def read(self, array: Array, scalar: Scalar) -> Array:
        """The elements of an array in the type in which the kernel computes."""
        b = Evaluator()
        return b.convert(b.load_from(array, scalar), self.x.compute).ir.array

    def write(self, array: Array, scalar: Scalar, values: Array) -> None:
        """Round the elements of `values`, and store them."""
        b = Evaluator()
        b.store_into(array, scalar, b.given(values.astype(self.compute, copy=False), self.x.compute))

    def scale(self, variance: Array, eps: float) -> Array:
        """1 / deviation from a running variance."""
        b = Evaluator()
        wide = b.load_from(variance, self.kept).ir.array.astype(np.float64)
        return (1.0 / np.sqrt(wide + eps)).astype(self.compute)


def _given(training: bool) -> None:
    if training:
        raise RuntimeError("batch_norm in training needs generated code: NumPy sums up a batch in another order")


def _forward(
    kinds: _Kinds, weighted: bool, biased: bool, out: Array, x: Array, arrays: tuple[Array, ...], eps: float
) -> Array:
    """`arrays` can be broadcast with `x`: mean, variance, weight and bias."""
    mean, variance, weight, bias = arrays
    with np.errstate(all="ignore"):
        value = kinds.read(x, kinds.x) - kinds.read(mean, kinds.kept)
        scale = kinds.scale(variance, eps)
        if weighted:
            scale = scale * kinds.read(weight, kinds.parameters)
        scale = np.broadcast_to(scale, value.shape)
        if biased:
            value = fma(value, scale, np.broadcast_to(kinds.read(bias, kinds.parameters), value.shape))
        else:
            value = value * scale
        kinds.write(out, kinds.x, value)
    return out


def batch_norm_planes(
    dtype: str, parameters: str, kept: str, weighted: bool, biased: bool, training: bool
) -> Callable[..., Array]:
    """(out, x, mean, rstd, variance, weight, bias, samples, channels, places, eps)."""
    _given(training)
    kinds = _Kinds(dtype, parameters, kept)

    def run(*arguments: Any) -> Array:
        out, x, mean, _, variance, weight, bias, samples, channels, places, eps = arguments
        shape = samples, channels, places
        arrays = tuple(each.reshape(channels, 1) for each in (mean, variance, weight, bias))
        _forward(kinds, weighted, biased, out.reshape(shape), x.reshape(shape), arrays, eps)
        return out

    return run


def batch_norm_lines(
    dtype: str, parameters: str, kept: str, weighted: bool, biased: bool, training: bool
) -> Callable[..., Array]:
    """(out, x, mean, rstd, variance, weight, bias, work, lines, channels, eps)."""
    _given(training)
    kinds = _Kinds(dtype, parameters, kept)

    def run(*arguments: Any) -> Array:
        out, x, mean, _, variance, weight, bias, _, lines, channels, eps = arguments
        arrays = mean, variance, weight, bias
        _forward(kinds, weighted, biased, out.reshape(lines, channels), x.reshape(lines, channels), arrays, eps)
        return out

    return run


class _Gradients:
    """The gradients of batch norm from its two sums: of the gradient, and of it times the distance to the mean."""

    def __init__(self, kinds: _Kinds, weighted: bool, of_input: bool) -> None:
        self._kinds, self._weighted, self._of_input = kinds, weighted, of_input

    def write(
        self, results: tuple[Array, ...], coming: Array, rstd: Array, weight: Array, sums: tuple[Array, Array], eps: Any
    ) -> None:
        """`results` are those of input, weight and bias; `coming`, `rstd` and `weight` can be broadcast."""
        kinds, (of_x, of_weight, of_bias), (along, total) = self._kinds, results, sums
        scale = kinds.scale(rstd, eps)
        kinds.write(of_weight, kinds.parameters, along * scale.reshape(-1).astype(np.float64))
        kinds.write(of_bias, kinds.parameters, total)
        if self._of_input:
            factor = scale * kinds.read(weight, kinds.parameters) if self._weighted else scale
            kinds.write(of_x, kinds.x, coming * factor)


def batch_norm_planes_backward(
    dtype: str, parameters: str, kept: str, weighted: bool, training: bool, of_input: bool
) -> Callable[..., Array]:
    """(of_x, of_weight, of_bias, grad, x, mean, rstd, weight, samples, channels, places, eps)."""
    _given(training)
    kinds = _Kinds(dtype, parameters, kept)
    gradients = _Gradients(kinds, weighted, of_input)

    def run(*arguments: Any) -> Array:
        of_x, of_weight, of_bias, grad, x, mean, rstd, weight, samples, channels, places, eps = arguments
        shape = samples, channels, places
        mean, rstd, weight = (each.reshape(channels, 1) for each in (mean, rstd, weight))
        with np.errstate(all="ignore"):
            coming = kinds.read(grad.reshape(shape), kinds.x)
            apart = kinds.read(x.reshape(shape), kinds.x) - kinds.read(mean, kinds.kept)
            along, total = (in_order(totals(each, kinds.width), 0) for each in (coming * apart, coming))
            results = of_x.reshape(shape), of_weight, of_bias
            gradients.write(results, coming, rstd, weight, (along, total), eps)
        return of_x

    return run


def _of_lines(terms: Array) -> Array:
    """The sum of each channel: four lines at a time, then blocks of lines, in float64."""
    blocks = []
    for start in range(0, len(terms), LINES):
        block = terms[start : start + LINES]
        fours = len(block) // 4
        quads = block[: 4 * fours].reshape(fours, 4, block.shape[1])
        added = (quads[:, 0] + quads[:, 1]) + (quads[:, 2] + quads[:, 3])
        blocks.append(in_order(np.concatenate([added, block[4 * fours :]]), 0))
    return column_totals(np.stack(blocks)[None])[0]


def batch_norm_lines_backward(
    dtype: str, parameters: str, kept: str, weighted: bool, training: bool, of_input: bool
) -> Callable[..., Array]:
    """(of_x, of_weight, of_bias, grad, x, mean, rstd, weight, work, lines, channels, eps)."""
    _given(training)
    kinds = _Kinds(dtype, parameters, kept)
    gradients = _Gradients(kinds, weighted, of_input)

    def run(*arguments: Any) -> Array:
        of_x, of_weight, of_bias, grad, x, mean, rstd, weight, _, lines, channels, eps = arguments
        shape = lines, channels
        with np.errstate(all="ignore"):
            coming = kinds.read(grad.reshape(shape), kinds.x)
            apart = kinds.read(x.reshape(shape), kinds.x) - kinds.read(mean, kinds.kept)
            sums = _of_lines(coming * apart), _of_lines(coming)
            gradients.write((of_x.reshape(shape), of_weight, of_bias), coming, rstd, weight, sums, eps)
        return of_x

    return run
