"""Copies that ops ask for by name. None: the reference makes them."""

from __future__ import annotations

from typing import Any

from ...._core.device import contiguous_format
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


def contiguous_clone(self: DeviceArray) -> DeviceArray:
    """A copy row by row."""
    return self.copy("C")


def clone(self: DeviceArray, memory_format: Any) -> DeviceArray | None:
    """A copy row by row, where that is the memory format."""
    if memory_format is contiguous_format or (memory_format is None and self.form.flags.c_contiguous):
        return self.copy("C")
    return None


def to_copy(self: DeviceArray, dtype: Any, memory_format: Any) -> DeviceArray | None:
    """A copy of another dtype, with the dimensions in memory in the same order."""
    if memory_format is not None:
        return None
    key = self.layout, dtype.numpy
    try:
        compiled = _conversions[key]
    except KeyError:
        if len(_conversions) >= _MOST_CONVERSIONS:
            _conversions.clear()
        compiled = _conversions[key] = _conversion(self.form, dtype.numpy)
    return None if compiled is None else compiled.unary(self)


def _conversion(form: Any, target: Any) -> Pointwise | None:
    is_here = form.dtype in _REAL and target in _REAL and is_dense(form)
    return cast(form.dtype, target) if is_here else None


_conversions: dict[tuple[Any, Any], Pointwise | None] = {}
"""By layout and type what converts elements to the type, where that is done here."""
_MOST_CONVERSIONS = 4096
