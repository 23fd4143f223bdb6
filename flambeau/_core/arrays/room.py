"""Memory for a large result, asked for before the tables from which it is made.

A kernel that lists places along each dimension first would spend seconds, and gigabytes, on a result that there is no
memory for.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

_MUCH = 1 << 30
"""Bytes; the tables of a smaller result are made quickly."""


def ensure_room(shape: tuple[int, ...], itemsize: int) -> None:
    """Raise MemoryError if an array of `shape` cannot be had."""
    wanted = math.prod(shape) * itemsize
    if wanted < _MUCH or max(shape) > sys.maxsize:  # the latter is no size at all: whoever makes the array says so
        return
    if wanted > sys.maxsize:
        raise MemoryError(f"a result needs {wanted} bytes")
    np.empty(wanted, np.uint8)


def ensure_room_like(array: Any, shape: tuple[int, ...]) -> None:
    """Raise MemoryError if a host array of `shape` with the dtype of `array` cannot be had."""
    if type(array) is np.ndarray:
        ensure_room(shape, array.dtype.itemsize)
