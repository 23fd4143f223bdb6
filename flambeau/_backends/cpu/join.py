"""Arrays side by side, by a generated kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._codegen.elements.join import join_lines

Array = Any

LONG = 64
"""Bytes; shorter lines NumPy copies as quickly."""


def concatenated(arrays: Sequence[Array], dim: int) -> Array | None:
    """Arrays of one dtype, without gaps, side by side along `dim`; None: NumPy has to do it, or to refuse it."""
    first = arrays[0]
    dims = first.ndim
    dim += dims if dim < 0 else 0
    if not 0 < dim < dims:
        return None  # along the first dimension it is one copy for each
    before, after = first.shape[:dim], first.shape[dim + 1 :]
    unit = math.prod(after) * first.itemsize
    for each in arrays:
        if each.ndim != dims or each.shape[:dim] != before or each.shape[dim + 1 :] != after:
            return None
        if each.shape[dim] * unit < LONG:
            return None
    lines, total = math.prod(before), sum([each.shape[dim] for each in arrays])
    if lines < 2:
        return None
    result = np.empty((*before, total, *after), first.dtype)
    lengths = np.array([each.shape[dim] * unit for each in arrays], np.int64)
    return join_lines()(result, lines, total * unit, lengths, *arrays)
