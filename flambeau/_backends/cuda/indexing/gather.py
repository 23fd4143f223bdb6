"""Elements and rows by position on the device. None: no kernel fits, and the reference runs.

Nobody waits to see whether positions are in range: the kernels do, and say so later (`runtime/index_errors.py`).
"""

from __future__ import annotations

import math
from functools import cache
from struct import Struct
from typing import Any

from ...._codegen.cuda.gather import THREADS, elements_source, rows_source
from ...._core.arrays.quick import name_of
from ..arrays.array import DeviceArray, dense, empty
from ..runtime.driver import driver

_INDICES = frozenset(("int64", "int32"))
_SIZES = frozenset((1, 2, 4, 8))
_MOST_DIMENSIONS = 8


def check_rows(indices: DeviceArray, rows: int) -> bool:
    """Whether rows exist is seen when they are read."""
    return True


@cache
def _rows(size: int, width: int, index: str, wraps: bool) -> Any:
    return driver().compile(rows_source(size, width, index, wraps))


@cache
def _elements(size: int, index: str, dimensions: int) -> Any:
    layout = Struct(f"=qQQQqqQ{2 * dimensions}q")
    return driver().compile(elements_source(size, index, dimensions)), layout.pack


_FIELDS = Struct("=qQQQqqqQ").pack


def _picked(
    op: str, array: DeviceArray, index: DeviceArray, shape: tuple[int, ...], dim: int, wraps: bool = False
) -> DeviceArray | None:
    """The slices of `array` along `dim` at positions, with the shape of the result.

    `wraps`: positions below zero count from the end.
    """
    form = array.form
    size = form.itemsize
    if name_of(index.form.dtype) not in _INDICES or size not in _SIZES:
        return None
    made = empty(shape, form.dtype)
    if not made.form.size:
        return made
    array, index = dense(array), dense(index)
    inner = math.prod(form.shape[dim + 1 :])
    width = 16 // size
    if inner % width or array.pointer % 16:
        width = 1
    count = made.form.size // width
    fields = _FIELDS(
        count, array.pointer, index.pointer, made.pointer, form.shape[dim], index.form.size, inner, driver().faults(op)
    )
    _rows(size, width, name_of(index.form.dtype), wraps)(-(-count // THREADS), THREADS, fields)
    return made


def embedding(
    weight: DeviceArray, indices: DeviceArray, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> DeviceArray | None:
    """Rows of a table."""
    return _picked("embedding", weight, indices, (*indices.form.shape, weight.form.shape[1]), 0)


def index_select(self: DeviceArray, dim: int, index: DeviceArray) -> DeviceArray | None:
    """Slices along a dimension."""
    shape = self.form.shape
    if not shape:
        return None
    return _picked("index_select", self, index, (*shape[:dim], index.form.size, *shape[dim + 1 :]), dim)


def index(self: DeviceArray, advanced: Any, indices: Any) -> DeviceArray | None:
    """`self[positions]` along one dimension, where both lie row by row."""
    found, dim = None, 0
    for number, each in enumerate(advanced):
        if each is not None:
            if found is not None:
                return None
            found, dim = each, number
    if type(found) is not DeviceArray or not found.form.flags.c_contiguous:
        return None
    if not self.form.size or not self.form.flags.c_contiguous:
        return None
    shape = self.shape
    return _picked("indexing", self, found, (*shape[:dim], *found.shape, *shape[dim + 1 :]), dim, True)


def gather(self: DeviceArray, dim: int, index: DeviceArray) -> DeviceArray | None:
    """Elements at positions along a dimension."""
    form, given = self.form, index.form
    dims = given.ndim
    if not (0 < dims <= _MOST_DIMENSIONS and dims == form.ndim and form.size):
        return None
    if name_of(given.dtype) not in _INDICES or form.itemsize not in _SIZES:
        return None
    made = empty(given.shape, form.dtype)
    count = given.size
    if not count:
        return made
    index = dense(index)
    walk = [
        number for axis, size in enumerate(given.shape) for number in (size, 0 if axis == dim else form.strides[axis])
    ]
    launch, pack = _elements(form.itemsize, name_of(given.dtype), dims)
    fields = pack(
        count, self.pointer, index.pointer, made.pointer, form.shape[dim], form.strides[dim], driver().faults("gather"),
        *walk,
    )  # fmt: skip
    launch(-(-count // THREADS), THREADS, fields)
    return made
