"""Arrays side by side, by a generated kernel."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._codegen.elements.join import BYTES, join_lines, join_whole

Array = Any
Shape = tuple[int, ...]

LONG = 64
"""Bytes; shorter lines NumPy copies as quickly."""


def concatenated(arrays: Sequence[Array], dim: int, stacked: bool) -> Array | None:
    """Arrays of one dtype, without gaps, side by side along `dim`, which is new if `stacked`.

    None: NumPy has to do it, or to refuse it.
    """
    dtype = arrays[0].dtype
    plan = _plan(tuple([each.shape for each in arrays]), dim, stacked, dtype.itemsize)
    if plan is None:
        return None
    shape, lines, step, lengths = plan
    out = np.empty(shape, dtype)
    return join_lines()(out, lines, step, lengths, *arrays) if lines > 1 else join_whole()(out, step, lengths, *arrays)


@functools.lru_cache(256)
def _plan(shapes: tuple[Shape, ...], dim: int, stacked: bool, itemsize: int) -> tuple[Shape, int, int, Array] | None:
    """The shape that results, the number of its lines, their bytes, and how many of these come from each array."""
    if stacked:
        shapes = tuple([(*each[:dim], 1, *each[dim:]) for each in shapes])
    first = shapes[0]
    dim += len(first) if dim < 0 else 0
    if not 0 <= dim < len(first):
        return None
    before, after = first[:dim], first[dim + 1 :]
    unit = math.prod(after) * itemsize
    for each in shapes:
        if len(each) != len(first) or each[:dim] != before or each[dim + 1 :] != after or each[dim] * unit < LONG:
            return None
    lines, total = math.prod(before), sum([each[dim] for each in shapes])
    lengths = np.array([each[dim] * unit for each in shapes], np.int64)
    if lines < 2 and total * unit < 2 * BYTES:
        return None  # NumPy copies as quickly on one thread
    return (*before, total, *after), lines, total * unit, lengths
