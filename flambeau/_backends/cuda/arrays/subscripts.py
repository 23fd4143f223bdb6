"""Subscripts of device arrays: views, and elements at positions that are arrays themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.driver import driver
from .array import DeviceArray, seen_as, view_of
from .assignment import assign, copyto
from .host import adopted, by_host, movable
from .raw_types import RAW

_SLICES = {slice}
_PLAIN = (int, slice, type(None), type(Ellipsis), np.integer)


def _is_plain(index: Any) -> bool:
    """Whether an index makes a view."""
    if type(index) is tuple:
        return all(isinstance(each, _PLAIN) and not isinstance(each, bool) for each in index)
    return isinstance(index, _PLAIN) and not isinstance(index, bool)


def _first_place(form: Any, slices: tuple[slice, ...]) -> int:
    """How many bytes behind the beginning of an array that of its part is."""
    place = 0
    for dim, each in enumerate(slices):
        if each.start or each.step is not None:
            place += each.indices(form.shape[dim])[0] * form.strides[dim]
    return place


def getitem(self: DeviceArray, index: Any) -> Any:
    """A view, or the elements at positions that are arrays themselves."""
    if type(index) is tuple and set(map(type, index)) == _SLICES:  # the usual case, quickly
        form = self.form[index]
        if form.size:
            return seen_as(self, form, _first_place(self.form, index))
    if _is_plain(index):
        whole = index if type(index) is tuple else (index,)
        if not any(each is Ellipsis for each in whole):
            whole = (*whole, Ellipsis)  # so that a single element is a view too
        return view_of(self, self.form[whole])
    source = movable(self)
    try:
        result = adopted(driver().seen(source)[_positions(index)])
    except (TypeError, ValueError, NotImplementedError, IndexError):
        return by_host(_Subscript.getitem, (self, index), {})
    return result if source is self else result.view(self.form.dtype)


def setitem(self: DeviceArray, index: Any, value: Any) -> None:
    """Overwrite the elements that a subscript names."""
    if _is_plain(index):
        target = self if index is Ellipsis else getitem(self, index)
        assign(target, value)
        return
    one = type(value) is not DeviceArray or value.size == 1
    if one and type(index) is DeviceArray and index.dtype == bool and index.shape == self.shape:
        copyto(self, value if type(value) is not DeviceArray else value.reshape(()), where=index)
        return
    if type(value) is DeviceArray:
        value = movable(value.astype(self.form.dtype, copy=False))
    elif movable(self) is not self:
        given: Any = np.asarray(value)
        value = np.asarray(given.astype(self.form.dtype)).view(RAW[self.itemsize])[()]
    try:
        driver().seen(movable(self))[_positions(index)] = driver().seen(value) if type(value) is DeviceArray else value
    except (TypeError, ValueError, NotImplementedError, IndexError):
        by_host(_Subscript.put, (self, index, value), {})


class _Subscript:
    """Subscripts as functions, for the way over the host."""

    @staticmethod
    def getitem(array: Any, index: Any) -> Any:
        return array[index]

    @staticmethod
    def put(array: Any, index: Any, value: Any) -> None:
        array[index] = value


def _positions(index: Any) -> Any:
    if type(index) is DeviceArray:
        return driver().seen(index)
    if type(index) is tuple:
        return tuple([_positions(each) for each in index])
    if isinstance(index, np.ndarray) and index.ndim:
        raise TypeError(f"an index of the host, of shape {index.shape}, meets an array on cuda")
    return index
