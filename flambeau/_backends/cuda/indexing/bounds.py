"""Indices: a kernel checks that they are in range, and the host learns of it later (`runtime/index_errors.py`)."""

from __future__ import annotations

from functools import cache
from struct import Struct
from typing import Any

from ...._codegen.cuda.indices import THREADS, outside_source
from ...._core.arrays.quick import name_of
from ..arrays.array import DeviceArray
from ..runtime.driver import driver

_pack = Struct("=qQqqQ").pack


@cache
def _kernel(dtype: str) -> Any:
    return driver().compile(outside_source(dtype))


def note_outside(array: DeviceArray, low: int, high: int, op: str) -> bool:
    """Let the next wait raise an error for `op` if a number is below `low`, or not below `high`; True until then."""
    if array.size:
        numbers = array if array.form.flags.c_contiguous else array.copy()
        fields = _pack(numbers.size, numbers.pointer, low, high, driver().faults(op))
        _kernel(name_of(numbers.dtype))(-(-numbers.size // THREADS), THREADS, fields)
    return True
