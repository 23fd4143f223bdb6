"""Elements of a given rank along a dimension: `kthvalue` and medians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._codegen.rows.select import select_lines
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
