"""Matrices moved to memory where their rows lie otherwise."""

from __future__ import annotations

from functools import cache
from struct import Struct
from typing import Any

from ...._codegen.cuda.moves import PACK, THREADS, resize_source
from ..arrays.array import DeviceArray, empty
from ..runtime.driver import driver

_FIELDS = Struct("=qQQqqqqq").pack


@cache
def _kernel(wide: bool) -> Any:
    return driver().compile(resize_source(wide))


def resized(matrix: DeviceArray, rows: int, columns: int) -> DeviceArray:
    """A matrix of 16-bit elements, whose rows are without gaps inside, of another size: cut off, or with zeros more."""
    form = matrix.form
    made = empty((rows, columns), form.dtype)
    packs = -(-made.form.size // PACK)
    step = form.strides[0] // form.itemsize
    reach = max(form.shape[0] * step, made.form.size)
    fields = _FIELDS(made.form.size, matrix.pointer, made.pointer, *form.shape, step, rows, columns)
    _kernel(reach >= 1 << 31)(-(-packs // THREADS), THREADS, fields)
    return made
