"""Running results on the device, and what sorting serves for. None: no kernel fits."""

from __future__ import annotations

import math
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from ...._codegen.cuda.scans import THREADS, scan_source, segments_source
from ...._core.arrays.quick import name_of
from ...._core.process.determinism import DETERMINISM
from ..arrays.array import DeviceArray, dense, empty
from ..runtime.driver import driver

_FUNCTIONS = frozenset(("maximum", "minimum", "logaddexp", "logical_and", "logical_or", "bitwise_xor"))
_SUMS = frozenset(("add", "multiply"))
"""What the library accumulates by all threads together, in another order in each run."""
_TYPES = frozenset(("float32", "float64", "int64", "int32", "int16", "int8", "uint8", "uint64", "bool"))
_pack = Struct("=qqqQQ").pack
_SEGMENTED = frozenset(("add", "multiply", "maximum", "minimum"))
_pack_segments = Struct("=qqqQQQ").pack


@cache
def _kernel(function: str, dtype: str) -> Any:
    return driver().compile(scan_source(function, dtype))


def accumulated(function: str, array: DeviceArray, axis: int) -> DeviceArray | None:
    """`function.accumulate`: the result of all elements so far, along an axis."""
    name = name_of(array.dtype)
    if function not in _FUNCTIONS and not (DETERMINISM.asked and function in _SUMS):
        return None
    if name not in _TYPES or not array.ndim:
        return None
    if function.startswith("logical") != (name == "bool") and function != "maximum":
        return None
    made = empty(array.shape, array.dtype)
    if array.size:
        source = dense(array)
        length, inner = array.shape[axis], math.prod(array.shape[axis % array.ndim + 1 :])
        lines = array.size // length
        fields = _pack(lines, length, inner, source.pointer, made.pointer)
        _kernel(function, name)(-(-lines // THREADS), THREADS, fields)
    return made


def last_of_running(function: str, array: DeviceArray, axis: Any, dtype: Any, keepdims: bool) -> DeviceArray | None:
    """`function.reduce`: the last of the running results, along one axis after the other, the last axis first."""
    if dtype is not None or not array.size:
        return None
    axes = range(array.ndim) if axis is None else [axis] if type(axis) is int else axis
    found = array
    for each in sorted([each % array.ndim for each in axes], reverse=True):
        running = accumulated(function, found, each)
        if running is None:
            return None
        last = slice(-1, None) if keepdims else -1
        found = running[(*[slice(None)] * each, last)]
    return found.copy()


@cache
def _segments_kernel(function: str, dtype: str) -> Any:
    return driver().compile(segments_source(function, dtype))


def segmented(function: str, array: Any, starts: Any, axis: int = 0) -> DeviceArray | None:
    """`function.reduceat` along the first axis: the rows from each of `starts` to the next become one."""
    if function not in _SEGMENTED or axis or not (type(array) is type(starts) is DeviceArray):
        return None
    name = name_of(array.dtype)
    if array.dtype.kind == "c" and function == "add" and array.size:
        parts = dense(array).reshape(array.shape[0], -1).view(np.dtype(f"f{array.itemsize // 2}"))
        sums: Any = segmented(function, parts, starts)
        return None if sums is None else sums.view(array.dtype).reshape(-1, *array.shape[1:])
    if name not in _TYPES or name == "bool" or not array.size or starts.form.dtype.kind not in "iu":
        return None
    source, starts = dense(array), dense(starts.astype(np.int64, copy=False))
    rows, count = array.shape[0], starts.form.size
    made = empty((count, *array.shape[1:]), array.dtype)
    if made.size:
        columns = array.size // rows
        fields = _pack_segments(count, rows, columns, starts.pointer, source.pointer, made.pointer)
        _segments_kernel(function, name)(-(-made.size // THREADS), THREADS, fields)
    return made


def partitioned(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    """`np.partition`: what is sorted is divided at every position."""
    return np.sort(a, -1 if axis is None else axis)


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """`np.fill_diagonal`, of a matrix."""
    if a.ndim != 2 or wrap:
        raise NotImplementedError("fill_diagonal of what is no matrix")
    a.diagonal()[...] = val
