"""Sums of a few elements along a dimension, by a generated kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._codegen.images.taps import taps_summed
from ..._core.arrays.quick import name_of

Array = Any

_NAMES = frozenset(("float32", "float64", "int32", "uint8"))


def summed(array: Array, dim: int, indices: Array, weights: Array | None, counts: Array | None) -> Array | None:
    """See `arrays.taps_summed`."""
    name = name_of(array.dtype)
    if name not in _NAMES or (weights is not None and weights.dtype != array.dtype):
        return None
    if indices.dtype != np.int64 or (counts is not None and counts.dtype != np.int64):
        return None
    array = np.ascontiguousarray(array)
    shape, (taps, results) = array.shape, indices.shape
    out = np.empty((*shape[:dim], results, *shape[dim + 1 :]), array.dtype)
    if not out.size or not taps:
        return None
    sizes = math.prod(shape[:dim]), shape[dim], results, math.prod(shape[dim + 1 :]), taps
    kernel, indices = taps_summed(name, weights is not None, counts is not None), np.ascontiguousarray(indices)
    weights = indices if weights is None else np.ascontiguousarray(weights)
    counts = indices if counts is None else np.ascontiguousarray(counts)
    return kernel(out, array, indices, weights, counts, *sizes)
