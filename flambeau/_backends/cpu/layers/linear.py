"""Linear layers of float32: what most networks call most, in as few steps as there are.

The products are those of `array_dot` and `product_plus` (`_ops/linalg/products.py`), by the same kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._core.process.reproducibility import REPRODUCIBILITY
from ...arrays import FEW_ROWS, LEAST_OF_LIBRARY
from ...tiers import FAMILIES, library

_SINGLE = np.dtype(np.float32)
_LONG = 1024
"""The sums of longer rows are added up in pieces where NumPy multiplies."""
_CARRAY = 0x101
"""The flags of an array whose elements are aligned and lie one after another."""


def rows_of_transposed(rows: Any, weight: Any) -> Any:
    """`rows @ weight.T` of an array that ends with the rows; None: other kernels are for that."""
    length = weight.shape[1]
    if rows.dtype is not _SINGLE or weight.dtype is not _SINGLE or REPRODUCIBILITY.product is not None:
        return None
    if rows.size * weight.shape[0] > LEAST_OF_LIBRARY:
        return _by_library(rows, weight, None)
    if not 1 < length < _LONG:
        return None
    if rows.ndim == 2:
        return rows.dot(weight.T)
    return rows.reshape(-1, length).dot(weight.T).reshape(*rows.shape[:-1], weight.shape[0])


def addmm_of_transposed(row: Any, rows: Any, weight: Any, beta: Any, alpha: Any) -> Any:
    """`rows @ weight.T + row`, of as many rows as there are, as a matrix; None: other kernels are for that."""
    outputs, length = weight.shape
    if rows.dtype is not _SINGLE or weight.dtype is not _SINGLE or REPRODUCIBILITY.product is not None:
        return None
    if row.dtype is not _SINGLE or row.shape != (outputs,) or not alpha == 1 == beta:
        return None
    if rows.size * outputs > LEAST_OF_LIBRARY:
        return _by_library(rows, weight, row) if row.flags.c_contiguous else None
    if not 1 < length < _LONG:
        return None
    product = (rows if rows.ndim == 2 else rows.reshape(-1, length)).dot(weight.T)
    product += row
    return product


def _by_library(rows: Any, weight: Any, row: Any) -> Any:
    """A row added to a product, by the vendor's library; None: it is not there, or does not take these arrays."""
    if rows.size <= FEW_ROWS * weight.shape[1] or rows.flags.num & weight.flags.num & _CARRAY != _CARRAY:
        return None
    try:
        module = FAMILIES["library"]
    except KeyError:
        module = library()
    return None if module is None else module.product_of_rows(rows, weight, row)
