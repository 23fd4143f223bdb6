"""Running results on the device, and what sorting serves for. None: no kernel fits."""

from __future__ import annotations

import math
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from ...._codegen.cuda.scans import THREADS, scan_source
from ...._core.arrays.quick import name_of
from ..arrays.array import DeviceArray, empty
from ..runtime.driver import driver

_FUNCTIONS = frozenset(("maximum", "minimum", "logaddexp", "logical_and", "logical_or"))
_TYPES = frozenset(("float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"))
_pack = Struct("=qqqQQ").pack


@cache
def _kernel(function: str, dtype: str) -> Any:
    return driver().compile(scan_source(function, dtype))


def accumulated(function: str, array: DeviceArray, axis: int) -> DeviceArray | None:
    """`function.accumulate`: the result of all elements so far, along an axis."""
    name = name_of(array.dtype)
    if function not in _FUNCTIONS or name not in _TYPES or not array.ndim:
        return None
    if function.startswith("logical") != (name == "bool") and function != "maximum":
        return None
    made = empty(array.shape, array.dtype)
    if array.size:
        source = array if array.form.flags.c_contiguous else array.copy()
        length, inner = array.shape[axis], math.prod(array.shape[axis % array.ndim + 1 :])
        lines = array.size // length
        fields = _pack(lines, length, inner, source.pointer, made.pointer)
        _kernel(function, name)(-(-lines // THREADS), THREADS, fields)
    return made


def partitioned(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    """`np.partition`: what is sorted is divided at every position."""
    return np.sort(a, -1 if axis is None else axis)


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """`np.fill_diagonal`, of a matrix."""
    if a.ndim != 2 or wrap:
        raise NotImplementedError("fill_diagonal of what is no matrix")
    a.diagonal()[...] = val
