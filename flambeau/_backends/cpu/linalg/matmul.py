"""Products of two matrices of middling size, by generated code.

They are for machines without the vendor's library, which is quicker, and for what that does not do. NumPy's library is
as quick as this, as long as nothing else runs: its threads wait for each other. Large products are left to it, in parts
(`threaded_blas.py`).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...._codegen.elements.transpose import transposed_copy
from ...._codegen.products import few_rows
from ..memory.workspace import DIRECT, Workspace
from .gemm import Product, plan

_MOST_BY_ROWS, _MOST_BY_COLUMNS = 16, 8
"""More rows than these are better multiplied tile by tile."""
_NARROW = 16
"""Fewer columns leave most of a vector empty."""
_FLOATS = {np.dtype(np.float32): "float32", np.dtype(np.float64): "float64"}


def product(left: Any, right: Any, workspace: Workspace = DIRECT) -> Any:
    """The product of two matrices; None: NumPy has to do it.

    Below some 64**3 multiplications NumPy's library takes one thread, too: it is not worth asking.
    """
    (m, k), n = left.shape, right.shape[1]
    dtype = left.dtype
    name = _FLOATS.get(dtype)
    if name is None or right.dtype is not dtype or min(m, k) < 8 or n < _NARROW:
        return None
    item = dtype.itemsize
    left_steps, right_steps = _steps(left, item), _steps(right, item)
    if left_steps is None or right_steps is None:
        return None
    # The elements of the right matrix that lie in one row must be neighbours. If they are not, either that matrix is
    # turned, or the product: (AB)' = B'A', for which A is turned, and the result is turned back.
    if right_steps[1] != 1:
        turned_left = left_steps[0] == 1
        if (0 if turned_left else m * k) + m * n < k * n:
            if not turned_left:
                left, left_steps = _turned(left.T, workspace), (1, m)
                if left is None:
                    return None
            out = workspace.empty((n, m), dtype)
            _plan(name, n, k, m, right_steps[::-1], left_steps[::-1], left.size).run(
                out, right, left, workspace=workspace
            )
            return _turned(out.T, workspace)
        right, right_steps = _turned(right, workspace), (n, 1)
        if right is None:
            return None
    out = workspace.empty((m, n), dtype)
    _plan(name, m, k, n, left_steps, right_steps, right.size).run(out, left, right, workspace=workspace)
    return out


def product_of_few_rows(left: Any, right: Any, workspace: Workspace = DIRECT) -> Any:
    """The product of a few rows and a matrix without gaps; None: this is none."""
    name = _FLOATS.get(left.dtype)
    if name is None or right.dtype is not left.dtype or not left.flags.c_contiguous or not right.flags.forc:
        return None
    by_rows = right.flags.c_contiguous
    if left.shape[0] > (_MOST_BY_ROWS if by_rows else _MOST_BY_COLUMNS):
        return None
    out = workspace.empty((left.shape[0], right.shape[1]), left.dtype)
    if by_rows:
        return workspace.run(few_rows.product_by_rows(name), out, left, right)
    return workspace.run(few_rows.product(name), out, left, right.T)


def _steps(matrix: Any, item: int) -> tuple[int, int] | None:
    """The distances of rows and columns in elements."""
    down, across = matrix.strides
    return None if down % item or across % item or down < 0 or across < 0 else (down // item, across // item)


def _turned(matrix: Any, workspace: Workspace) -> Any:
    """A copy without gaps of a matrix whose columns are contiguous; None: they are not."""
    rows, columns = matrix.shape
    if matrix.strides[0] != matrix.itemsize:
        return None
    out = workspace.empty((rows, columns), matrix.dtype)
    step = matrix.strides[1] // matrix.itemsize
    return workspace.run(transposed_copy(_FLOATS[matrix.dtype]), out, matrix, 1, rows, columns, 0, step)


@functools.lru_cache(maxsize=512)
def _plan(dtype: str, m: int, k: int, n: int, left: tuple[int, int], right: tuple[int, int], limit: int) -> Product:
    """All that depends on sizes alone: networks repeat theirs."""
    return plan(
        dtype,
        rows=m,
        offsets=np.arange(k) * right[0],
        left_offsets=np.arange(k) * left[1],
        places=np.arange(n),
        column_offsets=np.arange(n) * right[1],
        out_row=n,
        left_row=left[0],
        limit=limit,
    )
