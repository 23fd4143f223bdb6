"""Sums in the orders of generated kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

BLOCK, LINES = 1024, 128
"""As in `rows/shared.py`: so many neighbours, or lines, are added in their own precision, such sums in float64."""


def in_order(terms: Array, dim: int) -> Array:
    """The sum along a dimension, from the first element to the last, beginning with zero."""
    if not terms.shape[dim]:
        return np.zeros(np.delete(terms.shape, dim), terms.dtype)
    return np.take(np.add.accumulate(terms, dim), -1, dim) + terms.dtype.type(0)


def folded(lanes: Array) -> Array:
    """The lanes of vectors, the last dimension, added in pairs."""
    while (count := lanes.shape[-1]) > 1:
        half = count // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes[..., 0]


def totals(terms: Array, width: int) -> Array:
    """The sum of each row, in float64: blocks of neighbours, in which each of `width` lanes adds up its elements."""
    length = terms.shape[-1]
    result = np.zeros(terms.shape[:-1])
    for start in range(0, length, BLOCK):
        block = terms[..., start : start + BLOCK]
        missing = -block.shape[-1] % width
        if missing:
            block = np.concatenate([block, np.zeros((*block.shape[:-1], missing), block.dtype)], -1)
        lanes = in_order(block.reshape(*block.shape[:-1], -1, width), -2 + block.ndim + 1)
        result = result + folded(lanes).astype(np.float64)
    return result


def column_totals(terms: Array) -> Array:
    """The sums along the middle one of three dimensions, in float64: some lines in their own precision, then these."""
    result = np.zeros((terms.shape[0], terms.shape[2]))
    for start in range(0, terms.shape[1], LINES):
        result = result + in_order(terms[:, start : start + LINES], 1).astype(np.float64)
    return result


def largest(values: Array, dim: int) -> Array:
    """The largest along a dimension, which is kept: NaN if there is one, and of zeros the positive one."""
    top = np.max(values, dim, keepdims=True)
    positive = ((values == 0) & ~np.signbit(values)).any(dim, keepdims=True)
    return np.where(top == 0, np.where(positive, values.dtype.type(0), -values.dtype.type(0)), top)
