"""Distances between the rows of matrices, by a generated kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._codegen.products.distances import distances
from ...._core.arrays.quick import broadcast, joint_shape
from ..runtime.dtypes import FULL_NAMES

Array = Any

_NORMS = {1.0: "1", 2.0: "2", math.inf: "inf"}


def all_distances(left: Array, right: Array, p: float) -> Array | None:
    """The `p`-norms of the differences between each row of `left` and each of `right`, matrices or batches of them."""
    name, norm = FULL_NAMES.get(left.dtype), _NORMS.get(p)
    if name is None or norm is None or right.dtype is not left.dtype or not left.size or not right.size:
        return None
    measure = distances(name, norm, False)
    if left.ndim == right.ndim == 2:
        result = np.empty((left.shape[0], right.shape[0]), left.dtype)
        return measure(result, np.ascontiguousarray(left), np.ascontiguousarray(right))
    batch = joint_shape(left.shape[:-2], right.shape[:-2])
    result = np.empty((*batch, left.shape[-2], right.shape[-2]), left.dtype)
    left, right = (broadcast(each, (*batch, *each.shape[-2:])) for each in (left, right))
    for place in np.ndindex(*batch):
        measure(result[place], np.ascontiguousarray(left[place]), np.ascontiguousarray(right[place]))
    return result


def distances_of_pairs(matrix: Array, p: float) -> Array | None:
    """The `p`-norms of the differences between every two rows of a matrix."""
    name, norm = FULL_NAMES.get(matrix.dtype), _NORMS.get(p)
    rows = matrix.shape[0]
    if name is None or norm is None or not matrix.size or rows < 2:
        return None
    result = np.empty(rows * (rows - 1) // 2, matrix.dtype)
    matrix = np.ascontiguousarray(matrix)
    distances(name, norm, True)(result, matrix, matrix)
    return result
