"""Products by the library that NumPy brings along, in parts that the threads of the pool share.

A result is divided in the same way whatever the number of threads, so that its bits do not depend on it.
"""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.products.shared import Entry, shared_products, shared_sums
from ...._core.arrays.quick import joint_shape
from ...._core.size import contiguous_strides
from .blas import openblas

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
_NAMES = ("scipy_cblas_{}gemm64_", "cblas_{}gemm64_")
_SETTINGS = ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_")
_AS_IT_LIES, _TURNED = 111, 112
_LEAST = 1 << 18
"""Up to so many multiplications the library takes one thread by itself."""
_WORTH = 1 << 22
"""So many multiplications are a part, some fifty microseconds of a thread."""
_FEWEST = 48
"""A part has at least so many rows or columns: the library copies the other matrix for each part."""
_DIMENSIONS = 4
Shape = tuple[int, ...]


class _Library(NamedTuple):
    """The addresses of the library's functions."""

    multiply: int
    get_threads: int
    set_threads: int


class Plan(NamedTuple):
    """What depends on dtype, shapes and strides alone: networks repeat theirs."""

    shape: Shape
    kernel: Any
    table: Any


def product(left: Any, right: Any, out: Any = None) -> Any:
    """`np.matmul(left, right, out)` of arrays with two to four dimensions; None: this is none to be shared."""
    dtype = left.dtype
    if right.dtype != dtype or not left.flags.aligned or not right.flags.aligned:
        return None
    plan = plan_of(dtype, left.shape, left.strides, right.shape, right.strides, _LEAST)
    if plan is None:
        return None
    if out is None:
        out = np.empty(plan.shape, dtype)
    elif out.shape != plan.shape or out.dtype != dtype or not out.flags.c_contiguous:
        return None
    return plan.kernel(out, left, right, plan.table)


@functools.lru_cache(maxsize=512)
def plan_of(
    dtype: Any, left: Shape, left_strides: Shape, right: Shape, right_strides: Shape, least: int = 0, summed: int = 0
) -> Plan | None:
    """The products of arrays of these shapes and strides; None: the library does not do them, or no more than `least`
    multiplications in all. `summed`: so many products, one after another, are added up.
    """
    library = _library(dtype.char)
    if library is None or not 2 <= len(left) <= _DIMENSIONS >= len(right) >= 2:
        return None
    (rows, length), columns, item = left[-2:], right[-1], dtype.itemsize
    if right[-2] != length:
        return None
    one, other = _layout(left, left_strides, item), _layout(right, right_strides, item)
    if one is None or other is None:
        return None
    try:
        batch = joint_shape(left[:-2], right[:-2])
    except ValueError:
        return None
    shape = (*batch, rows, columns)
    count = rows * length * columns
    if math.prod(batch) * count <= least:
        return None
    outer, inner = (1, 1, *batch)[-2:]
    products = outer * inner
    if summed:
        shape = (-(-products // summed), rows, columns)
    rows_each, columns_each = _division(rows, columns, count)
    by_rows = columns_each == columns
    parts = -(-rows // rows_each) * -(-columns // columns_each)
    left_part = rows_each * left_strides[-2] if by_rows else 0
    right_part = 0 if by_rows else columns_each * right_strides[-1]
    out_part = rows_each * columns * item if by_rows else columns_each * item
    steps = [_batch_steps(*each, batch) for each in ((left, left_strides), (right, right_strides))]
    steps.append((rows * columns * item, 0) if summed else _batch_steps(shape, _dense(shape, item), batch))
    if summed and len(batch) == 1:
        inner, steps[:2] = summed, [(summed * step, step) for _, step in steps[:2]]
    table = np.array([
        *library, one[0], other[0], one[1], other[1], columns, rows, columns, length, rows_each, columns_each, parts,
        products, inner, *steps[0], left_part, *steps[1], right_part, *steps[2], out_part,
        max(1, _LEAST // (count * max(summed, 1) // parts)), 0,
    ], np.int64)  # fmt: skip
    assert len(table) == len(Entry)
    return Plan(shape, (shared_sums if summed else shared_products)(dtype.name), table)


def _dense(shape: Shape, item: int) -> Shape:
    """The strides in bytes of an array without gaps."""
    return tuple([step * item for step in contiguous_strides(shape)])


def _division(rows: int, columns: int, count: int) -> tuple[int, int]:
    """The rows and columns of a part of the result, which has all of one of them."""
    parts = max(1, count // _WORTH)
    if rows >= columns:
        return min(rows, max(_FEWEST, -(-rows // parts))), columns
    return rows, min(columns, max(_FEWEST, -(-columns // parts)))


def _layout(shape: Shape, strides: Shape, item: int) -> tuple[int, int] | None:
    """How matrices lie, and how many elements are from one row, or one column, to the next; None: in neither way."""
    (rows, columns), (down, across) = shape[-2:], strides[-2:]
    if across == item and down >= columns * item and not down % item:
        return _AS_IT_LIES, down // item
    if down == item and across >= rows * item and not across % item:
        return _TURNED, across // item
    return None


def _batch_steps(shape: Shape, strides: Shape, batch: Shape) -> tuple[int, int]:
    """The distances along the two dimensions of a batch: 0 where it repeats."""
    missing = len(batch) - (len(shape) - 2)
    steps = [0] * missing + [0 if size == 1 else step for size, step in zip(shape[:-2], strides[:-2], strict=True)]
    outer, inner = (0, 0, *steps)[-2:]
    return outer, inner


@functools.cache
def _library(kind: str) -> _Library | None:
    """The functions for numbers of a kind; None: there are none, or the library is another one."""
    loaded, letter = openblas(), _LETTERS.get(kind)
    if loaded is None or letter is None:
        return None
    multiply, get, set_ = (
        next((getattr(loaded, each) for each in names if hasattr(loaded, each)), None)
        for names in (
            [name.format(letter) for name in _NAMES],
            [name.format("get") for name in _SETTINGS],
            [name.format("set") for name in _SETTINGS],
        )
    )
    if multiply is None or get is None or set_ is None:
        return None
    return _Library(*(ctypes.cast(each, ctypes.c_void_p).value or 0 for each in (multiply, get, set_)))
