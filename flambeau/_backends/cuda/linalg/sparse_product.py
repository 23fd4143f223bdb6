"""Products of sparse matrices with dense ones on the device, by generated kernels. None: no kernel fits."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from ...._codegen.cuda.row_sums import THREADS, sampled_product_source, sparse_product_source
from ...._codegen.cuda.types import TYPES
from ...._core.arrays.quick import name_of
from ..arrays.array import DeviceArray, dense, empty
from ..indexing.row_sums import order_of
from ..runtime.driver import driver

_PRODUCT, _SAMPLED = Struct("=qqqqQQQQQQ").pack, Struct("=qqqqqqQQQQQ").pack


@cache
def _kernel(make: Callable[[str], str], name: str) -> Any:
    return driver().compile(make(name))


def _steps(array: DeviceArray) -> tuple[int, int]:
    """The strides of a matrix, in elements."""
    form = array.form
    return form.strides[0] // form.itemsize, form.strides[1] // form.itemsize


def _numbers(array: Any) -> Any:
    return dense(array.astype(np.int64, copy=False))


def sparse_product(rows: Any, columns: Any, values: Any, matrix: Any, height: int) -> DeviceArray | None:
    """The matrix of `height` rows: each value, times the row of `matrix` of its column, is added to its row."""
    name = name_of(values.dtype)
    if name not in TYPES or matrix.dtype != values.dtype:
        return None
    made = empty((height, matrix.form.shape[1]), values.dtype)
    if not made.form.size:
        return made
    rows, columns, values = _numbers(rows), _numbers(columns), dense(values)
    order: Any = order_of(rows)
    starts = _numbers(np.searchsorted(rows[order], np.arange(height + 1, like=rows)))
    fields = _PRODUCT(
        made.form.size, made.form.shape[1], *_steps(matrix), starts.pointer, order.pointer, columns.pointer,
        values.pointer, matrix.pointer, made.pointer,
    )  # fmt: skip
    _kernel(sparse_product_source, name)(-(-made.form.size // THREADS), THREADS, fields)
    return made


def sampled_product(rows: Any, columns: Any, left: Any, right: Any) -> DeviceArray | None:
    """The elements of the product of two dense matrices at given rows and columns."""
    name = name_of(left.dtype)
    if name not in TYPES or right.dtype != left.dtype:
        return None
    made = empty((rows.form.size,), left.dtype)
    if not made.form.size:
        return made
    rows, columns = _numbers(rows), _numbers(columns)
    fields = _SAMPLED(
        made.form.size, left.form.shape[1], *_steps(left), *_steps(right), rows.pointer, columns.pointer, left.pointer,
        right.pointer, made.pointer,
    )  # fmt: skip
    _kernel(sampled_product_source, name)(-(-made.form.size // THREADS), THREADS, fields)
    return made
