"""Running sums and products of large arrays."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...._codegen.rows.scan import extreme_rows, scan_columns, scan_rows
from ...._codegen.types import SCALARS
from ...._core.arrays.quick import dim_moved, name_of
from ..elementwise.copy import contiguous
from ..runtime.dtypes import float_name, name_of_type

_OF_INTEGERS = ("add", "multiply")
_INT64 = np.dtype(np.int64)


def running(kind: str, array: Any, dim: int, fade: Any = None) -> Any:
    """`array` summed up ("add", "multiply", "logaddexp") along `dim`; None: NumPy has to do it.

    Of the kind "fading", what was summed up so far is multiplied by `fade` at each step.
    """
    name = float_name(array)
    if name is None and kind in _OF_INTEGERS and name_of(array.dtype) == "int64":
        name = "int64"
    if name is None:
        return None
    array = np.ascontiguousarray(array)
    fade = array if fade is None else np.ascontiguousarray(fade)
    outer, length, inner = math.prod(array.shape[:dim]), array.shape[dim], math.prod(array.shape[dim + 1 :])
    out = np.empty(array.shape, array.dtype)
    if inner == 1:
        return scan_rows(kind, name)(out, array, fade, outer, length)
    return scan_columns(kind, name)(out, array, fade, outer, length, inner)


def extremes(array: Any, dim: int, largest: bool) -> Any:
    """The extremes so far along `dim` and where they were last attained; None: NumPy has to do it."""
    kernel = _extreme_rows(array.dtype, largest)
    if kernel is None or not array.size:
        return None
    lines = contiguous(array if dim == array.ndim - 1 else dim_moved(array, dim, -1))
    shape = lines.shape
    values, indices = np.empty(shape, array.dtype), np.empty(shape, _INT64)
    kernel(values, indices, lines, lines.size // shape[-1], shape[-1])
    if dim == array.ndim - 1:
        return values, indices
    # By way of one dimension, so that dimensions of size 1 have the strides of a new array too.
    return tuple(dim_moved(each, -1, dim).reshape(-1).reshape(array.shape) for each in (values, indices))


@functools.cache
def _extreme_rows(dtype: np.dtype[Any], largest: bool) -> Any:
    name = name_of(dtype) if dtype.kind in "iu" else name_of_type(dtype)
    return extreme_rows(largest, name) if name in SCALARS else None
