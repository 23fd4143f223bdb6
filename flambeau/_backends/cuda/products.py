"""Products of matrices, and of batches of them, by the library's matrix multiplication, in every floating dtype.

Sums are in float32 for 16-bit floats, else in the type itself.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..._core.arrays.quick import name_of
from .array import DeviceArray, empty, zeros
from .driver import driver
from .moves import resized

TYPES = frozenset(("float16", "bfloat16", "float32", "float64", "complex64", "complex128"))


def product(left: DeviceArray, right: DeviceArray) -> DeviceArray | None:
    """`left @ right`; None for dtypes that the library does not multiply."""
    first, second = left.form, right.form
    dtype = first.dtype
    if dtype != second.dtype or name_of(dtype) not in TYPES or not (first.ndim and second.ndim):
        return None
    if first.ndim == 2 == second.ndim:
        (rows, inner), (other, columns) = first.shape, second.shape
        if inner != other:
            raise ValueError(f"matmul: shapes {first.shape} and {second.shape} do not fit")
        if not (rows and inner and columns):
            return zeros((rows, columns), dtype)
        if dtype.itemsize == 2 and (rows | inner | columns) % _PACK and rows * inner * columns >= _WORTHWHILE:
            return _even_product(left, right)
        result = empty((rows, columns), dtype)
        driver().multiply(result, laid_out(left), laid_out(right))
        return result
    if second.ndim == 2 and first.ndim > 2 and first.flags.c_contiguous:  # many rows
        flat = product(left.reshape(-1, first.shape[-1]), right)
        return None if flat is None else flat.reshape(*first.shape[:-1], second.shape[1])
    a = left[None] if first.ndim == 1 else left
    b = right[:, None] if second.ndim == 1 else right
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"matmul: shapes {first.shape} and {second.shape} do not fit")
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    found = _batch(_as_batch(a, batch), _as_batch(b, batch))
    shape = batch + ((a.shape[-2],) if first.ndim > 1 else ()) + ((b.shape[-1],) if second.ndim > 1 else ())
    return found.reshape(shape)


def _as_batch(array: DeviceArray, batch: tuple[int, ...]) -> DeviceArray:
    """An array of matrices along one dimension: a view where the strides allow it."""
    sizes = array.shape[-2:]
    if array.ndim == 2:
        return _broadcast(array[None], (int(np.prod(batch, dtype=np.int64)), *sizes))
    if array.shape[:-2] != batch:
        array = _broadcast(array, (*batch, *sizes))
    return array.reshape(-1, *sizes) if array.size else array.reshape(int(np.prod(batch, dtype=np.int64)), *sizes)


def _broadcast(array: Any, shape: tuple[int, ...]) -> DeviceArray:
    """NumPy's function, which the array runs itself."""
    found: Any = np.broadcast_to(array, shape)
    return cast(DeviceArray, found)


def _batch(left: DeviceArray, right: DeviceArray) -> DeviceArray:
    count, rows, inner = left.form.shape
    columns = right.form.shape[2]
    if not (inner and count and rows and columns):
        return zeros((count, rows, columns), left.form.dtype)
    result = empty((count, rows, columns), left.form.dtype)
    driver().multiply(result, laid_out(left), laid_out(right))
    return result


def laid_out(array: DeviceArray) -> DeviceArray:
    """A matrix, or several, in one of the two forms that the library reads: rows, or columns, without gaps inside."""
    form = array.form
    item = form.itemsize
    outer, inner = form.strides[-2:]
    rows, columns = form.shape[-2:]
    by_rows = (inner == item or columns == 1) and (outer >= columns * item or rows == 1)
    by_columns = (outer == item or rows == 1) and (inner >= rows * item or columns == 1)
    fits = outer % item == 0 and inner % item == 0 and form.strides[0] >= 0
    return array if fits and (by_rows or by_columns) else array.copy()


# ----- matrices of odd sizes ------------------------------------------------------------------------------------------

_PACK = 8
_WORTHWHILE = 1 << 33
"""From so many multiplications on copies of odd matrices cost less than the library's kernels for such matrices."""


def _even_product(left: DeviceArray, right: DeviceArray) -> DeviceArray:
    """A product of 16-bit floats of odd sizes: that of matrices with some zeros more, without what these add to it.

    The library's best kernels read 16 bytes at a time, from places that are multiples of that.
    """
    (rows, inner), columns = left.form.shape, right.form.shape[1]
    more_rows, more_inner, more_columns = -rows % _PACK, -inner % _PACK, -columns % _PACK
    first, second = _with_zeros(left, more_rows, more_inner), _with_zeros(right, more_inner, more_columns)
    result = empty((rows + more_rows, columns + more_columns), left.form.dtype)
    driver().multiply(result, first, second)
    return resized(result, rows, columns) if more_rows or more_columns else result


def _with_zeros(matrix: DeviceArray, rows: int, columns: int) -> DeviceArray:
    """A matrix with some rows and columns of zeros more, in the form that it lies in."""
    height, width = matrix.form.shape
    matrix = laid_out(matrix)
    by_rows = matrix.form.strides[1] == matrix.form.itemsize
    if not (rows or columns):
        return matrix
    if by_rows:
        return resized(matrix, height + rows, width + columns)
    return resized(matrix.T, width + columns, height + rows).T
