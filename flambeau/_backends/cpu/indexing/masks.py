"""Elements written where a mask says so, by a generated kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._codegen.elements.masks import fill_where
from ..elementwise.copy import BITS

Array = Any
_MOST_DIMENSIONS = 3


def fill(target: Array, mask: Array, value: Array) -> bool:
    """Write `value`, one element of the target's dtype, where the mask holds; whether it was done.

    The mask is one of booleans, and broadcast to the target.
    """
    bits = BITS.get(target.itemsize)
    if bits is None or not target.size or not target.flags.c_contiguous or mask.dtype.kind != "b":
        return False
    dims = _merged(target.shape, np.broadcast_to(mask, target.shape).strides)
    if len(dims) > _MOST_DIMENSIONS or dims[-1][1] != 1:
        return False
    (outer, outer_step), (middle, middle_step), (inner, _) = [(1, 0)] * (_MOST_DIMENSIONS - len(dims)) + dims
    fill_where(bits)(target, mask, value, outer, middle, inner, outer_step, middle_step)
    return True


def _merged(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[tuple[int, int]]:
    """Sizes and strides, in which neighbouring dimensions that can be seen as one are one."""
    merged: list[tuple[int, int]] = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if merged and merged[-1][1] == stride * size:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    return merged or [(1, 1)]
