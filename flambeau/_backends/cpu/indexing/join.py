"""Arrays side by side, by a generated kernel."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.elements.join import BYTES, join_lines, join_whole
from ...._core.arrays.views import is_row_major
from ...._core.geometry.layout import joint_dimensions
from ..elementwise.copy import MANY, copy_into

Array = Any
Shape = tuple[int, ...]

LONG = 64
"""Bytes; shorter lines NumPy copies as quickly."""
_AXES = 3
"""Lines may lie in rows, and rows in planes."""


class _Plan(NamedTuple):
    """How arrays come to lie side by side: each line of the result is one of every array."""

    shape: Shape
    lines: int
    step: int
    """Bytes of a line of the result."""
    planes: Shape
    """How many rows of how many lines make a plane."""
    lengths: Array
    """Bytes of a line of each array."""
    distances: Array | None
    """Bytes from one plane, row and line of each array to the next; None: the lines have gaps themselves."""


def concatenated(arrays: Sequence[Array], dim: int, stacked: bool) -> Array | None:
    """Arrays of one dtype side by side along `dim`, which is new if `stacked`.

    None: NumPy has to do it, or to refuse it.
    """
    dtype = arrays[0].dtype
    plan = _plan(tuple([(each.shape, each.strides) for each in arrays]), dim, stacked, dtype.itemsize)
    if plan is None:
        return None
    out = np.empty(plan.shape, dtype)
    if plan.distances is None:
        return _joined_by_copies(out, arrays, dim % out.ndim, stacked)
    if plan.lines > 1:
        return join_lines()(out, plan.lines, plan.step, *plan.planes, plan.lengths, plan.distances, *arrays)
    return join_whole()(out, plan.step, plan.lengths, *arrays)


@functools.lru_cache(256)
def _plan(known: tuple[tuple[Shape, Shape], ...], dim: int, stacked: bool, itemsize: int) -> _Plan | None:
    if stacked:
        known = tuple([(_with_one(shape, dim), _with_one(strides, dim)) for shape, strides in known])
    first = known[0][0]
    dim += len(first) if dim < 0 else 0
    if not 0 <= dim < len(first):
        return None
    before, after = first[:dim], first[dim + 1 :]
    unit = math.prod(after) * itemsize
    for shape, _ in known:
        if len(shape) != len(first) or shape[:dim] != before or shape[dim + 1 :] != after:
            return None
    lines, total = math.prod(before), sum([shape[dim] for shape, _ in known])
    lengths = [shape[dim] * unit for shape, _ in known]
    joined = (*before, total, *after)
    if not all(is_row_major(shape[dim:], strides[dim:], itemsize) for shape, strides in known):
        is_many = not stacked and lines * total * unit >= MANY * itemsize
        return _by_copies(joined, lines, total * unit, lengths) if is_many else None
    if min(lengths) < LONG and lines > 1 and lines * total * unit >= MANY * itemsize:
        return _by_copies(joined, lines, total * unit, lengths)
    if min(lengths) < LONG or (lines < 2 and total * unit < 2 * BYTES):
        return None  # NumPy copies as quickly on one thread
    sizes, distances = joint_dimensions(before, [strides[:dim] for _, strides in known])
    if len(sizes) > _AXES:
        return None
    missing = _AXES - len(sizes)
    return _Plan(
        joined,
        lines,
        total * unit,
        (*(1,) * missing, *sizes)[1:],
        np.array(lengths, np.int64),
        np.array([(*(0,) * missing, *each) for each in distances], np.int64),
    )


def _by_copies(joined: Shape, lines: int, step: int, lengths: list[int]) -> _Plan:
    return _Plan(joined, lines, step, (), np.array(lengths, np.int64), None)


def _joined_by_copies(out: Array, arrays: Sequence[Array], dim: int, stacked: bool) -> Array:
    start, around = 0, (slice(None),) * dim
    for each in arrays:
        stop = start + (1 if stacked else each.shape[dim])
        part = out[(*around, start if stacked else slice(start, stop))]
        if not copy_into(part, each):
            np.copyto(part, each)
        start = stop
    return out


def _with_one(numbers: Shape, dim: int) -> Shape:
    """Sizes, or strides, with a dimension of one element, whose stride does not matter."""
    return (*numbers[:dim], 1, *numbers[dim:])
