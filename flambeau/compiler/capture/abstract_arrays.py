"""Arrays without memory: what a recorded call has made is let go when the call itself lets it go.

A recording needs of an array what it looks like and where it lies beside others, never its elements. An
`AbstractArray` has both and nothing to read: its place is a number in a range that nothing else is in. What lay in the
same memory has abstract arrays in the same range; what only came to lie there later, when the first was gone, has not.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..._core.arrays.abstract import AbstractArray
from ..._core.backend import backend_of_array, is_array
from ..program.reads import bounds

_ALIGNED = 64
_FIRST = 1 << 62
"""Where ranges begin: no array has such an address."""


class AbstractArrays:
    """The abstract arrays of the arrays that one call makes."""

    def __init__(self, before: list[Any]) -> None:
        self._of_devices: dict[type, Any] = {}
        """What makes the abstract arrays of a device's arrays, by their class; None: nothing does."""
        for kind in {type(each) for each in before} - {np.ndarray}:
            own = [each for each in before if type(each) is kind]
            self._of_devices[kind] = _abstract_beside(own[0], own)
        self._before: dict[int, Any] = {}
        """Who owns the memory that was there before, by identity, as long as it is there: its arrays stay as they are.
        Gradients go when they are forgotten, and what is made then may get their identity."""
        for each in before:
            owner = owner_of(each)
            if type(owner) is np.ndarray:
                self._before[id(owner)] = _until_gone(owner, self._before)
        self._ranges: dict[int, tuple[Any, int]] = {}
        """For each owner of memory, by its identity: a reference that tells when it is gone, and how far the range is
        from its addresses."""
        self._next = _FIRST

    def of(self, array: Any) -> Any:
        """An abstract array in place of an array; the array itself where its memory is not the call's own."""
        if type(array) is not np.ndarray:
            return self._of_device(array)
        owner = owner_of(array) if array.size else None
        if type(owner) is not np.ndarray or not owner.flags.owndata or id(owner) in self._before:
            return array
        _, distance = self._ranges.get(id(owner)) or self._new(owner)
        address: int = array.__array_interface__["data"][0]
        return AbstractArray(array.shape, array.strides, array.dtype, None, address + distance)

    def _of_device(self, array: Any) -> Any:
        kind = type(array)
        if kind not in self._of_devices:
            self._of_devices[kind] = _abstract_beside(array, [])
        abstracts = self._of_devices[kind]
        return array if abstracts is None else abstracts.of(array)

    def _new(self, owner: Any) -> tuple[Any, int]:
        low, high = bounds(owner)
        found = self._ranges[id(owner)] = _until_gone(owner, self._ranges), self._next - low
        self._next += (1 - (low - high) // _ALIGNED) * _ALIGNED  # no range touches the next one
        return found


def _until_gone(owner: Any, table: dict[int, Any]) -> Any:
    """A reference to an object that takes its entry out of a table when it goes."""
    key = id(owner)
    return weakref.ref(owner, lambda _: table.pop(key, None))


def _abstract_beside(array: Any, before: list[Any]) -> Any:
    """What makes abstract arrays of arrays of a device like this one, but of those before; None: nothing does."""
    family = backend_of_array(array).functions["placeholders"] if is_array(array) else None
    return None if family is None else family.AbstractArrays(before)


def owner_of(array: Any) -> Any:
    """What the memory of an array belongs to: an array, or an object of another kind."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array


def is_on_host(array: Any) -> bool:
    """Whether an array is one of NumPy's, or the abstract array of one."""
    return type(array) in (np.ndarray, AbstractArray)
