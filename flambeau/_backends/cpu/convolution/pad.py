"""Padding by mirrored and by repeated edges, of arrays without gaps."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...._codegen.images.pad import REFLECT, REPLICATE, pad_edges
from ..elementwise.copy import BITS

Array = Any
Sizes = tuple[int, ...]


def reflected(array: Array, padding: Sizes) -> Array | None:
    """`array` with its last dimensions continued by their mirror images; None: NumPy has to do it."""
    return _padded(array, padding, REFLECT)


def replicated(array: Array, padding: Sizes) -> Array | None:
    """`array` with its last dimensions continued by the elements at their ends; None: NumPy has to do it."""
    return _padded(array, padding, REPLICATE)


def _padded(array: Array, padding: Sizes, mode: str) -> Array | None:
    plan = _plan(array.shape, array.itemsize, padding, mode)
    if plan is None or not array.flags.c_contiguous:
        return None
    kernel, shape, numbers = plan
    return kernel(np.empty(shape, array.dtype), array, *numbers)


@functools.lru_cache(256)
def _plan(shape: Sizes, itemsize: int, padding: Sizes, mode: str) -> tuple[Any, Sizes, Sizes] | None:
    """The kernel, the shape of its result and the numbers that it is called with."""
    bits, rank = BITS.get(itemsize), len(padding) // 2
    before, after = padding[::2][::-1], padding[1::2][::-1]
    if bits is None or 0 in shape or min(padding) < 0:
        return None
    sizes, lead, missing = shape[-rank:], shape[:-rank], 3 - rank
    padded = tuple([sum(each) for each in zip(sizes, before, after, strict=True)])
    ones, none = (1,) * missing, (0,) * missing
    numbers = (math.prod(lead), *ones, *sizes, *ones, *padded, *none, *before)
    return pad_edges(bits, mode), lead + padded, numbers
