"""Products of matrices, and of batches of them, by the library's matrix multiplication, in every floating dtype.

Sums are in float32 for 16-bit floats, else in the type itself.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from .array import DeviceArray, empty, zeros
from .driver import driver
from .names import name_of

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
        target = _rows(rows, columns, dtype) if inner >= _WORTHWHILE else empty((rows, columns), dtype)
        driver().multiply(target, laid_out(left, columns), laid_out(right, rows))
        return target if target.base is None else target.copy()
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


def laid_out(array: DeviceArray, products: int = 0) -> DeviceArray:
    """A matrix, or several, in one of the two forms that the library reads: rows, or columns, without gaps inside.

    One whose rows begin at odd places, with which each element takes part in many `products`, is copied to others: the
    library's best kernels for 16-bit floats read 16 bytes at a time.
    """
    form = array.form
    item = form.itemsize
    outer, inner = form.strides[-2:]
    rows, columns = form.shape[-2:]
    by_rows = (inner == item or columns == 1) and (outer >= columns * item or rows == 1)
    by_columns = (outer == item or rows == 1) and (inner >= rows * item or columns == 1)
    fits = outer % item == 0 and inner % item == 0 and form.strides[0] >= 0
    if not fits or not (by_rows or by_columns):
        return array.copy()
    if item == 2 and products >= _WORTHWHILE and (outer if by_rows else inner) % _PACK and form.size >= _LARGE:
        made = _rows(rows, columns, form.dtype) if by_rows else _rows(columns, rows, form.dtype).T
        made[...] = array
        return made
    return array


_PACK, _LARGE, _WORTHWHILE = 16, 1 << 20, 128


def _rows(rows: int, columns: int, dtype: np.dtype[Any]) -> DeviceArray:
    """A new matrix whose rows begin at multiples of 16 bytes, with gaps between them if need be."""
    whole = _PACK // dtype.itemsize if dtype.itemsize == 2 and rows * columns >= _LARGE else 1
    if columns % whole == 0:
        return empty((rows, columns), dtype)
    return empty((rows, columns + -columns % whole), dtype)[:, :columns]
