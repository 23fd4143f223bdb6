"""Products with matrices of 8-bit and 4-bit integers, by generated kernels where the left operand has few rows.

With many rows the product computes more than it reads: the kernels return None, and floats are multiplied.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._codegen.products.few_rows import int4_product, product

Array = Any

MOST_ROWS = 16


def _fits(x: Array, *others: Array) -> bool:
    arrays = (x, *others)
    return (
        x.dtype == np.float32
        and 0 < x.shape[0] <= MOST_ROWS
        and all(each.size and each.flags.c_contiguous for each in arrays)
    )


def int8pack_mm(self: Array, mat2: Array, scales: Array) -> Array | None:
    """Rows of floats by rows of 8-bit integers, each of which has a scale."""
    if not _fits(self, mat2, scales) or scales.dtype != np.float32:
        return None
    out = np.empty((self.shape[0], mat2.shape[0]), np.float32)
    product("int8")(out, self, mat2, scales)
    return out


def int4pack_mm(self: Array, mat2: Array, group_size: int, scales: Array) -> Array | None:
    """Rows of floats by rows of 4-bit integers, with a scale and a zero for each group of them."""
    if not _fits(self, mat2, scales) or scales.dtype != np.float32:
        return None
    out = np.empty((self.shape[0], mat2.shape[0]), np.float32)
    int4_product()(out, self, mat2, scales)
    return out
