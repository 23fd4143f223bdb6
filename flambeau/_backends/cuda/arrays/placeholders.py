"""Arrays without memory, for what a compiled function has made in a recorded call: `capture/abstract_arrays.py`."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from .array import DeviceArray, over

_FIRST = 1 << 62
"""No device has memory there."""
_APART = 1 << 48
"""Ranges are as far from each other: whatever is a window on one is in none of the others."""


class _Range:
    """Addresses behind which there is nothing."""

    def __init__(self, pointer: int) -> None:
        self.ptr = pointer


class AbstractArrays:
    """The placeholders of the arrays that one call makes; `before` were there."""

    def __init__(self, before: Iterable[Any]) -> None:
        self._before: dict[int, Any] = {}
        """The arrays that were there, by identity, as long as they are: what is made later may get it."""
        for root in [_root(each) for each in before if type(each) is DeviceArray]:
            self._before[id(root)] = _until_gone(root, self._before)
        self._ranges: dict[int, tuple[Any, _Range]] = {}
        """For each array that is no window, by its identity: a reference that tells when it is gone, and a range."""
        self._next = _FIRST

    def of(self, array: DeviceArray) -> DeviceArray:
        """A placeholder of an array; the array itself where its memory is not the call's own."""
        root = _root(array)
        if id(root) in self._before or not array.size:
            return array
        _, found = self._ranges.get(id(root)) or self._new(root)
        form = array.form
        return over(found, found.ptr + array.pointer - root.pointer, form.shape, form.dtype, form.strides)

    def _new(self, root: DeviceArray) -> tuple[Any, _Range]:
        made = self._ranges[id(root)] = _until_gone(root, self._ranges), _Range(self._next)
        self._next += _APART
        return made


def _until_gone(root: DeviceArray, table: dict[int, Any]) -> Any:
    """A reference to an array that takes its entry out of a table when it goes."""
    key = id(root)
    return weakref.ref(root, lambda _: table.pop(key, None))


def _root(array: DeviceArray) -> DeviceArray:
    return array if array.base is None else array.base
