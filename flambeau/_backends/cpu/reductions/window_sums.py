"""Sums of a few elements along a dimension, by a generated kernel."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ...._codegen.images.taps import taps_summed

Array = Any

_NAMES = frozenset(("float32", "float64", "int32", "uint8"))
_INT64 = np.dtype(np.int64)


@lru_cache(256)
def _plan(
    shape: tuple[int, ...], dim: int, taps: int, results: int, dtype: np.dtype[Any], weighted: bool, counted: bool
) -> tuple[Any, tuple[int, ...], tuple[int, ...]] | None:
    """The kernel, the shape that results, and numbers for the kernel; None: there is none."""
    name, wanted = dtype.name, (*shape[:dim], results, *shape[dim + 1 :])
    if name not in _NAMES or not taps or 0 in wanted:
        return None
    sizes = math.prod(shape[:dim]), shape[dim], results, math.prod(shape[dim + 1 :]), taps
    return taps_summed(name, weighted, counted), wanted, sizes


def summed(array: Array, dim: int, indices: Array, weights: Array | None, counts: Array | None) -> Array | None:
    """See `arrays.taps_summed`."""
    dtype = array.dtype
    if indices.dtype != _INT64 or (counts is not None and counts.dtype != _INT64):
        return None
    if weights is not None and weights.dtype != dtype:
        return None
    plan = _plan(array.shape, dim, *indices.shape, dtype, weights is not None, counts is not None)
    if plan is None:
        return None
    kernel, shape, sizes = plan
    indices = np.ascontiguousarray(indices)
    weights = indices if weights is None else np.ascontiguousarray(weights)
    counts = indices if counts is None else np.ascontiguousarray(counts)
    return kernel(np.empty(shape, dtype), np.ascontiguousarray(array), indices, weights, counts, *sizes)
