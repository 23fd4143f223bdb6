"""What stands behind every in-place change that an op's kernel does not make by itself: elements stored, filled."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from ..._backends.arrays import store
from ..._core.arrays.narrow import as_type, fill_with, halves_by_way_of_single, widened
from ..._core.dtype import WIDE_TYPES
from ..._core.process.caller import PACKAGE
from ..op import Array
from ..writer import writer

_BYTE = np.dtype(np.uint8)


def write(target: Any, source: Any) -> None:
    """Store one array in another, converting as PyTorch does. Overlapping memory is read before it is written."""
    if source.dtype is not target.dtype and _by_steps(source.dtype, target.dtype):
        source = widened(source)
        if source.dtype.kind == "c" and WIDE_TYPES.get(target.dtype, target.dtype).kind not in "cb":
            warnings.warn(
                "Casting complex values to real discards the imaginary part", UserWarning, stacklevel=_outside_stack()
            )
            source = source.real
        source = as_type(source, target.dtype)
    if not store(target, source):
        np.copyto(target, source, casting="unsafe")


def converts_by_itself(source: Any, target: Any) -> bool:
    """Whether NumPy alone converts one type into another as PyTorch does."""
    return not _by_steps(source, target)


def _by_steps(source: Any, target: Any) -> bool:
    if source.kind == "c" or (target is _BYTE and source.kind not in "iub"):
        return True
    if halves_by_way_of_single(source, target):
        return True
    return bool(WIDE_TYPES) and (source in WIDE_TYPES or target in WIDE_TYPES)


def _outside_stack() -> int:
    """The `stacklevel` of a warning that `write` gives: the first frame outside the package."""
    level = 1
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((PACKAGE, "<public")):
        frame = frame.f_back
        level += 1
    return level


@writer("copy_", writes=("self",), counted=False)
def store_elements(self: Array, src: Array) -> None:
    """Overwrite the elements of a tensor. Who calls it counts the change, and records it."""
    write(self, src)


@writer("fill_", writes=("self",), counted=False)
def store_number(self: Array, value: Any) -> None:
    """Overwrite the elements of a tensor with one number that its dtype can hold."""
    fill_with(self, value)
