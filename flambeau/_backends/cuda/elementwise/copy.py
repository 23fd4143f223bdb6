"""Copies that ops ask for by name. None: the reference makes them."""

from __future__ import annotations

from typing import Any

from ...._core.dtype import bfloat16, float16, float32
from ..arrays.array import DeviceArray, empty_beside, is_dense
from ..arrays.ufuncs import cast
from ..runtime.driver import driver
from .pointwise import Pointwise

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
    form = self.form
    if memory_format is not None or not (form.flags.c_contiguous or is_dense(form)):
        return None
    key = form.dtype, dtype.numpy
    try:
        compiled = _conversions[key]
    except KeyError:
        source, target = key
        compiled = _conversions[key] = cast(source, target) if source in _REAL and target in _REAL else None
    return None if compiled is None else compiled.unary(self)


_conversions: dict[tuple[Any, Any], Pointwise | None] = {}
"""What converts elements of one type to another, where that is done here."""
