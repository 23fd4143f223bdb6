"""Arrays without data, which tensors of the meta device hold: shape, strides and type over memory that is not there.

All of them are windows on one reserved range of addresses, so large that hardly any tensor reaches beyond its end. It
takes no memory, cannot be written, and is full of zeros to whoever reads it by mistake.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from ..size import contiguous_strides
from .narrow import strided

_RANGES = (1 << 46, 1 << 42, 1 << 38, 1 << 34)
"""How many bytes to ask for, the most first: processors differ in the addresses that they have."""


@cache
def _addresses() -> Any:
    """The reserved range; None where the operating system gives none."""
    import mmap

    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return None
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    for size in _RANGES:
        with suppress(OSError, ValueError, OverflowError):
            return mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ)
    return None


def new_owner(nbytes: int) -> Any:
    """Memory that is not there: an array of bytes with at least `nbytes` where that can be had, else with few.

    Each call gives another object: what tells one storage from another is who owns it.
    """
    addresses = _addresses()
    if addresses is not None and nbytes <= len(addresses):
        return np.frombuffer(addresses, np.uint8)
    few = np.zeros(16, np.uint8)
    few.flags.writeable = False
    return few


def empty_meta(shape: tuple[int, ...], array_type: np.dtype[Any], strides: tuple[int, ...] | None = None) -> Any:
    """A dataless array; contiguous unless `strides` (in bytes) say otherwise."""
    item = array_type.itemsize
    if strides is None:
        strides = tuple([step * item for step in contiguous_strides(shape)])
    reach = 0 if 0 in shape else item + sum([(size - 1) * step for size, step in zip(shape, strides, strict=True)])
    owner = new_owner(reach)
    if reach <= owner.nbytes:
        return np.ndarray(shape, array_type, owner, 0, strides)
    return strided(owner[:item].view(array_type), shape, strides)


def meta_array(array: Any) -> Any:
    """A dataless array with the shape, strides and type of `array`."""
    return empty_meta(array.shape, array.dtype, array.strides)
