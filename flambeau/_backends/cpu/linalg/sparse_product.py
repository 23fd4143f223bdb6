"""Products of sparse matrices with dense ones, by a generated kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._codegen.products.sparse import add_sparse_product
from ..indexing.gather import within
from ..runtime.dtypes import FULL_NAMES

Array = Any

_INDICES = {np.dtype(np.int64): "int64", np.dtype(np.int32): "int32"}


def sparse_product(rows: Array, columns: Array, values: Array, dense: Array, height: int) -> Array | None:
    """The matrix of `height` rows in which every value, times the row of `dense` of its column, is added to its row."""
    dtype, kind = FULL_NAMES.get(values.dtype), _INDICES.get(rows.dtype)
    if dtype is None or kind is None or columns.dtype is not rows.dtype or dense.dtype is not values.dtype:
        return None
    if not within(rows, height) or not within(columns, dense.shape[0]):
        return None
    result = np.zeros((height, dense.shape[1]), dense.dtype)
    if not result.size:
        return result
    if dense.strides[1] != dense.itemsize or dense.strides[0] < 0:
        dense = np.ascontiguousarray(dense)
    rows, columns, values = (np.ascontiguousarray(each) for each in (rows, columns, values))
    return add_sparse_product(dtype, kind)(result, rows, columns, values, dense, dense.strides[0] // dense.itemsize)
