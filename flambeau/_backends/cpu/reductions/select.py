"""Elements of a given rank along a dimension, `kthvalue` and medians; the first few in order; the most frequent."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ...._codegen.rows.extremes import LONGEST, extreme_of_columns, extreme_of_rows
from ...._codegen.rows.select import leading_rows, most_frequent, select_lines
from ...._codegen.types import scalar_of
from ...._core.arrays.quick import dim_moved
from ..elementwise.copy import contiguous

Array = Any
Sizes = tuple[int, ...]

_INT64 = np.dtype(np.int64)


def selected(array: Array, dim: int, keepdim: bool, kind: str, rank: int) -> tuple[Array, Array] | None:
    """The elements and where they are along `dim`. `kind` is "given", by `rank`, or "median" or "nanmedian"."""
    scalar = scalar_of(array.dtype)
    if scalar is None or array.size == 0 or array.ndim == 0:
        return None
    length = array.shape[dim]
    lines = contiguous(array if dim == array.ndim - 1 else dim_moved(array, dim, -1))
    shape = array.shape[:dim] + ((1,) if keepdim else ()) + array.shape[dim + 1 :]
    values, positions = np.empty(shape, array.dtype), np.empty(shape, _INT64)
    select_lines(kind, scalar.name)(values, positions, lines, math.prod(shape), length, rank)
    return values, positions


_FEW = 16
_SHORT = 32
"""Up to so many are put in their places one after the other: of lines of any length, and of short ones all."""


def leading(array: Array, dim: int, count: int, largest: bool, nan_leads: bool) -> tuple[Array, Array] | None:
    """The first `count` elements in order along `dim`, and where they are; None: they are too many."""
    plan = _leading_plan(array.dtype, array.shape, dim, count, largest, nan_leads)
    if plan is None:
        return None
    kernel, shape, sizes = plan
    last = dim == array.ndim - 1
    lines = contiguous(array if last else dim_moved(array, dim, -1))
    values, positions = np.empty(shape, array.dtype), np.empty(shape, _INT64)
    kernel(values, positions, lines, *sizes)
    if last:
        return values, positions
    shape = (*array.shape[:dim], count, *array.shape[dim + 1 :])
    if count == 1:  # the others are in their order
        return values.reshape(shape), positions.reshape(shape)
    # By way of one dimension, so that dimensions of size 1 have the strides of a new array too.
    first, second = [dim_moved(each, -1, dim).reshape(-1).reshape(shape) for each in (values, positions)]
    return first, second


@lru_cache(1024)
def _leading_plan(
    dtype: np.dtype[Any], shape: Sizes, dim: int, count: int, largest: bool, nan_leads: bool
) -> tuple[Any, Sizes, Sizes] | None:
    """The kernel that fits, the shape of what it writes, with `dim` last, and the sizes that it is told."""
    scalar = scalar_of(dtype)
    if scalar is None or scalar.name == "bool" or 0 in shape or not 0 < count <= _SHORT:
        return None
    length = shape[dim]
    if count > _FEW and length > _SHORT:
        return None
    others = shape[:dim] + shape[dim + 1 :]
    return leading_rows(largest, nan_leads, scalar.name), (*others, count), (math.prod(others), length, count)


def extremes(array: Array, dim: int, keepdim: bool, largest: bool) -> tuple[Array, Array] | None:
    """The largest or the smallest elements along `dim`, and where the first of each is; NaN is both."""
    plan = _extremes_plan(array.dtype, array.shape, dim, keepdim, largest)
    if plan is None:
        return None
    kernel, shape, sizes = plan
    values, positions = np.empty(shape, array.dtype), np.empty(shape, _INT64)
    kernel(values, positions, contiguous(array), *sizes)
    return values, positions


@lru_cache(1024)
def _extremes_plan(
    dtype: np.dtype[Any], shape: Sizes, dim: int, keepdim: bool, largest: bool
) -> tuple[Any, Sizes, Sizes] | None:
    """The kernel that fits, the shape of its results, and the sizes that it is told."""
    scalar = scalar_of(dtype)
    if scalar is None or scalar.name == "bool" or 0 in shape or shape[dim] > LONGEST:
        return None
    outer, length, inner = math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])
    kept = shape[:dim] + (1,) * keepdim + shape[dim + 1 :]
    if inner == 1:
        return extreme_of_rows(largest, scalar.name), kept, (outer, length)
    return extreme_of_columns(largest, scalar.name), kept, (outer, length, inner)


_COMPARED = 256
"""Up to this length, comparing each element with all others takes less time than sorting them."""


def mode(array: Array, dim: int, keepdim: bool) -> tuple[Array, Array] | None:
    """The most frequent elements along `dim`, of several the smallest, and where each is for the last time."""
    scalar = scalar_of(array.dtype)
    if scalar is None or scalar.name == "bool" or not array.ndim or not 0 < array.shape[dim] <= _COMPARED:
        return None
    length = array.shape[dim]
    lines = contiguous(array if dim == array.ndim - 1 else dim_moved(array, dim, -1))
    shape = array.shape[:dim] + (1,) * keepdim + array.shape[dim + 1 :]
    values, positions = np.empty(shape, array.dtype), np.empty(shape, _INT64)
    most_frequent(scalar.name)(values, positions, lines, values.size, length)
    return values, positions
