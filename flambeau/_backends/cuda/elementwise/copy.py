"""Copies that ops ask for by name. None: the reference makes them."""

from __future__ import annotations

from typing import Any

from ...._core.dtype import bfloat16, float16, float32
from ..arrays.array import DeviceArray, empty_beside, is_dense
from ..arrays.ufuncs import cast
from ..runtime.driver import driver

_REAL = frozenset(each.numpy for each in (float32, float16, bfloat16))
"""The types of numbers that are rounded alike by everyone."""


def copied_like(self: DeviceArray, like: DeviceArray) -> DeviceArray | None:
    """A copy with the strides of another array, where both lie row by row."""
    given, wanted = self.form, like.form
    if not (given.flags.c_contiguous and wanted.flags.c_contiguous and given.shape == wanted.shape and given.size):
        return None
    made = empty_beside(like, given.dtype)
    driver().copy(made.pointer, self.pointer, given.nbytes)
    return made


def to_copy(self: DeviceArray, dtype: Any, memory_format: Any) -> DeviceArray | None:
    """A copy of another dtype, with the dimensions in memory in the same order."""
    source, target = self.form.dtype, dtype.numpy
    if memory_format is not None or source not in _REAL or target not in _REAL or not is_dense(self.form):
        return None
    compiled = cast(source, target)
    return None if compiled is None else compiled.unary(self)
