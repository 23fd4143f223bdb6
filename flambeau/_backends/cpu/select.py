"""Elements of a given rank along a dimension, `kthvalue` and medians; the first few in order; the most frequent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._codegen.rows.select import leading_rows, most_frequent, select_lines
from ..._codegen.types import scalar_of
from ..._core.arrays.quick import dim_moved

Array = Any


def selected(array: Array, dim: int, keepdim: bool, kind: str, rank: int) -> tuple[Array, Array] | None:
    """The elements and where they are along `dim`. `kind` is "given", by `rank`, or "median" or "nanmedian"."""
    scalar = scalar_of(array.dtype)
    if scalar is None or array.size == 0 or array.ndim == 0:
        return None
    length = array.shape[dim]
    lines = np.ascontiguousarray(array if dim == array.ndim - 1 else dim_moved(array, dim, -1))
    shape = array.shape[:dim] + ((1,) if keepdim else ()) + array.shape[dim + 1 :]
    values, positions = np.empty(shape, array.dtype), np.empty(shape, np.int64)
    select_lines(kind, scalar.name)(values, positions, lines, math.prod(shape), length, rank)
    return values, positions


_FEW = 16
_SHORT = 32
"""Up to so many are put in their places one after the other: of lines of any length, and of short ones all."""


def leading(array: Array, dim: int, count: int, largest: bool, nan_leads: bool) -> tuple[Array, Array] | None:
    """The first `count` elements in order along `dim`, and where they are; None: they are too many."""
    scalar = scalar_of(array.dtype)
    if scalar is None or scalar.name == "bool" or not array.size or not 0 < count <= _SHORT:
        return None
    length = array.shape[dim]
    if count > _FEW and length > _SHORT:
        return None
    last = dim == array.ndim - 1
    lines = np.ascontiguousarray(array if last else dim_moved(array, dim, -1))
    shape = (*lines.shape[:-1], count)
    values, positions = np.empty(shape, array.dtype), np.empty(shape, np.int64)
    leading_rows(largest, nan_leads, scalar.name)(values, positions, lines, lines.size // length, length, count)
    if last:
        return values, positions
    shape = (*array.shape[:dim], count, *array.shape[dim + 1 :])
    if count == 1:  # the others are in their order
        return values.reshape(shape), positions.reshape(shape)
    # By way of one dimension, so that dimensions of size 1 have the strides of a new array too.
    first, second = [dim_moved(each, -1, dim).reshape(-1).reshape(shape) for each in (values, positions)]
    return first, second


def extremes(array: Array, dim: int, keepdim: bool, largest: bool) -> tuple[Array, Array] | None:
    """The largest or the smallest elements along `dim`, and where the first of each is; NaN is both."""
    scalar = scalar_of(array.dtype)
    if scalar is None or scalar.name == "bool" or not array.size:
        return None
    length, shape = array.shape[dim], array.shape[:dim] + (1,) * keepdim + array.shape[dim + 1 :]
    lines = np.ascontiguousarray(array if dim == array.ndim - 1 else dim_moved(array, dim, -1))
    values, positions = np.empty(shape, array.dtype), np.empty(shape, np.int64)
    leading_rows(largest, True, scalar.name)(values, positions, lines, values.size, length, 1)
    return values, positions


_COMPARED = 256
"""Up to this length, comparing each element with all others takes less time than sorting them."""


def mode(array: Array, dim: int, keepdim: bool) -> tuple[Array, Array] | None:
    """The most frequent elements along `dim`, of several the smallest, and where each is for the last time."""
    scalar = scalar_of(array.dtype)
    if scalar is None or scalar.name == "bool" or not array.ndim or not 0 < array.shape[dim] <= _COMPARED:
        return None
    length = array.shape[dim]
    lines = np.ascontiguousarray(array if dim == array.ndim - 1 else dim_moved(array, dim, -1))
    shape = array.shape[:dim] + (1,) * keepdim + array.shape[dim + 1 :]
    values, positions = np.empty(shape, array.dtype), np.empty(shape, np.int64)
    most_frequent(scalar.name)(values, positions, lines, values.size, length)
    return values, positions
