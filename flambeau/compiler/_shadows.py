"""Arrays without memory: what a recorded call has made is let go when the call itself lets it go.

A recording needs of an array what it looks like and where it lies beside others, never its elements. A shadow has both:
shape, strides, dtype, and an address in a range that nothing else is in. What lay in the same memory has shadows in the
same range; what only came to lie there later, when the first was gone, has not. Ranges are mapped and never written:
the system finds no memory for them, and whoever reads them finds zeros.
"""

from __future__ import annotations

import mmap
import weakref
from typing import Any

import numpy as np

from ._reads import bounds

_ALIGNED = 64
_PIECE = 1 << 24
"""Bytes of addresses that are taken at a time."""


class Shadows:
    """The shadows of the arrays that one call makes."""

    def __init__(self, before: list[Any]) -> None:
        self._before = {id(owner_of(each)) for each in before}
        """Who owns the memory that was there before: of that there are no shadows."""
        self._ranges: dict[int, tuple[Any, int, int]] = {}
        """For each owner of memory, by its identity: a reference that tells when it is gone, a range, and the address
        that is the beginning of the range."""
        self._free: Any = np.empty(0, np.uint8)

    def of(self, array: Any) -> Any:
        """A shadow of an array; the array itself where its memory is not the call's own."""
        owner = owner_of(array) if array.size else None
        if type(owner) is not np.ndarray or not owner.flags.owndata or id(owner) in self._before:
            return array
        _, range_, start = self._ranges.get(id(owner)) or self._new(owner)
        low = array.__array_interface__["data"][0]
        return np.ndarray(array.shape, array.dtype, range_, low - start, array.strides)

    def _new(self, owner: Any) -> tuple[Any, Any, int]:
        key, ranges = id(owner), self._ranges
        low, high = bounds(owner)
        size = -(-(high - low) // _ALIGNED) * _ALIGNED
        if size > self._free.size:
            self._free = np.frombuffer(_mapped(max(size, _PIECE)), np.uint8)
        range_, self._free = self._free[:size], self._free[size:]
        found = ranges[key] = weakref.ref(owner, lambda _: ranges.pop(key)), range_, low
        return found


def owner_of(array: Any) -> Any:
    """What the memory of an array belongs to: an array, or an object of another kind."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array


def _mapped(size: int) -> Any:
    """Addresses behind which there is nothing but zeros."""
    if hasattr(mmap, "PROT_READ"):
        return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ)
    return mmap.mmap(-1, size, access=mmap.ACCESS_READ)
