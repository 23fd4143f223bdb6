"""Elements written where a mask says so, by a generated kernel."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...._codegen.elements.pointwise import CONTIGUOUS, MOST_DIMENSIONS, SINGLE
from ..elementwise.copy import BITS
from ..elementwise.pointwise import Pointwise, pointwise

Array = Any


def fill(target: Array, mask: Array, value: Array) -> bool:
    """Write `value`, one element of the target's dtype, where the mask holds; whether it was done.

    The mask is one of booleans, and broadcast to the target.
    """
    bits = BITS.get(target.itemsize)
    if bits is None or not target.size or target.ndim > MOST_DIMENSIONS or mask.dtype.kind != "b":
        return False
    if 0 in target.strides or not target.flags.writeable or np.may_share_memory(target, mask):
        return False
    filler = _filler(bits)
    if filler is None:
        return False
    has_gaps = target.shape != mask.shape or not (target.flags.c_contiguous and mask.flags.c_contiguous)
    filler.into((target,), (target, mask, value), None if has_gaps else 2 * CONTIGUOUS + SINGLE)
    return True


@functools.cache
def _filler(bits: str) -> Pointwise | None:
    dtype = np.dtype(bits)
    return pointwise(lambda old, mask, value: np.where(mask, value, old), (dtype, np.dtype(bool), dtype), dtype)
