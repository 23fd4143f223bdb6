"""Products with matrices of 8-bit and 4-bit integers, by generated kernels where the left operand has few rows.

With many rows the product computes more than it reads: the kernels return None, and floats are multiplied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._codegen.products.packed_weights import ROWS, int4_product, int8_product

Array = Any

MOST_ROWS = 16


def _in_blocks(x: Array, columns: int, run: Callable[[int, slice, Array], None]) -> Array:
    """Run a kernel on as many rows at a time as it takes."""
    out = np.empty((x.shape[0], columns), np.float32)
    start = 0
    for rows in ROWS:
        while x.shape[0] - start >= rows:
            block = slice(start, start + rows)
            run(rows, block, out[block])
            start += rows
    return out


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

    def run(rows: int, block: slice, out: Array) -> None:
        int8_product(rows)(out, self[block], mat2, scales)

    return _in_blocks(self, mat2.shape[0], run)


def int4pack_mm(self: Array, mat2: Array, group_size: int, scales: Array) -> Array | None:
    """Rows of floats by rows of 4-bit integers, with a scale and a zero for each group of them."""
    if not _fits(self, mat2, scales) or scales.dtype != np.float32:
        return None
    blocks = 2 if group_size % 64 == 0 else 1
    sums = self.reshape(self.shape[0], -1, group_size).sum(-1)

    def run(rows: int, block: slice, out: Array) -> None:
        int4_product(rows, blocks)(out, self[block], sums[block], mat2, scales)

    return _in_blocks(self, mat2.shape[0], run)
