"""Products of matrices, and of batches of them, by the library's matrix multiplication, in every floating dtype.

Sums are in float32 for 16-bit floats, else in the type itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from ...._core.arrays.quick import name_of
from ...._core.process.gpu_choices import CHOICES
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..arrays.array import DeviceArray, empty, form_of, of_form, zeros
from ..runtime.plans import of_level
from . import blaslt
from .blas import Product, placed
from .fixed_order import multiplying, rows_product
from .resize import resized

TYPES = frozenset(("float16", "bfloat16", "float32", "float64", "complex64", "complex128"))


class _Call(NamedTuple):
    """A product that needs no preparation when its like comes again."""

    form: Any
    """Of the result: arrays share it."""
    multiply: Product


_calls: dict[Any, _Call | None] = of_level({})
_MOST_CALLS = 4096
_ALIGNED = 15
"""The plans are for matrices whose addresses are multiples of 16."""


def product(left: DeviceArray, right: DeviceArray) -> DeviceArray | None:
    """`left @ right`; None for dtypes that the library does not multiply."""
    if REPRODUCIBILITY.product is not None:
        left, right = dense_rows(left), aligned(right)
    key = left.layout, right.layout, CHOICES.shortened_products
    call = _calls.get(key)
    if call is None:
        first, second = left.form, right.form
        if key not in _calls:
            if len(_calls) >= _MOST_CALLS:
                _calls.clear()
            call = _calls[key] = prepared(first, second)
        if call is None:
            return _prepared_otherwise(left, right)
    result = of_form(call.form)
    call.multiply(result.pointer, left.pointer, right.pointer)
    return result


def dense_rows(array: DeviceArray) -> DeviceArray:
    """Rows without gaps, from a place on where packs may begin: one row has none, and many are read as it is."""
    return array if array.form.flags.c_contiguous and not array.pointer & _ALIGNED else array.copy()


def aligned(array: DeviceArray) -> DeviceArray:
    """The array, at a multiple of 16 bytes."""
    return array if not array.pointer & _ALIGNED else array.copy()


def by_rows(left: DeviceArray, right: DeviceArray) -> DeviceArray | None:
    """`left @ right.T`: a linear layer without bias; None too if they do not fit."""
    if REPRODUCIBILITY.product is not None:
        left, right = dense_rows(left), aligned(right)
    key = left.layout, right.layout, CHOICES.shortened_products
    call = _calls_by_rows.get(key)
    if call is None:
        first, second = left.form, right.form
        if first.ndim < 2 or second.ndim != 2 or first.shape[-1] != second.shape[1]:
            return None
        if key not in _calls_by_rows:
            if len(_calls_by_rows) >= _MOST_CALLS:
                _calls_by_rows.clear()
            _calls_by_rows[key] = prepared(first, second.T)
        return product(left, right.T)
    result = of_form(call.form)
    call.multiply(result.pointer, left.pointer, right.pointer)
    return result


_calls_by_rows: dict[Any, _Call | None] = of_level({})


def product_of_columns(left: DeviceArray, right: DeviceArray) -> DeviceArray | None:
    """`left.T @ right`, of all rows of arrays with any number of dimensions; None if they do not fit."""
    key = left.layout, right.layout, CHOICES.shortened_products
    call = _calls_of_columns.get(key)
    if call is None:
        if key not in _calls_of_columns:
            if len(_calls_of_columns) >= _MOST_CALLS:
                _calls_of_columns.clear()
            call = _calls_of_columns[key] = prepared_columns(left.form, right.form)
        if call is None:
            return None
    result = of_form(call.form)
    call.multiply(result.pointer, left.pointer, right.pointer)
    return result


_calls_of_columns: dict[Any, _Call | None] = of_level({})


def prepared_columns(first: Any, second: Any) -> _Call | None:
    """What `product_of_columns` needs for arrays of these forms."""
    if not (first.ndim >= 2 <= second.ndim and first.size and second.size):
        return None
    if (first.ndim > 2 and not first.flags.c_contiguous) or (second.ndim > 2 and not second.flags.c_contiguous):
        return None
    left, right = (form if form.ndim == 2 else form.reshape(-1, form.shape[-1]) for form in (first, second))
    return prepared(left.T, right, over_samples=True)


def batches(left: DeviceArray, right: DeviceArray) -> DeviceArray | None:
    """Lowering of `bmm`: products of matrices, one for each of a batch."""
    key = left.layout, right.layout, CHOICES.shortened_products
    call = _calls_of_batches.get(key)
    if call is None:
        first, second = left.form, right.form
        if key not in _calls_of_batches:
            if len(_calls_of_batches) >= _MOST_CALLS:
                _calls_of_batches.clear()
            call = _calls_of_batches[key] = _prepared_batches(first, second)
        if call is None:
            return _prepared_otherwise(left, right)
    result = of_form(call.form)
    call.multiply(result.pointer, left.pointer, right.pointer)
    return result


_calls_of_batches: dict[Any, _Call | None] = of_level({})


def matmul(left: DeviceArray, right: DeviceArray) -> DeviceArray | None:
    """Lowering of `matmul` for equal batches of matrices along any number of dimensions; None: others do it."""
    first, second = left.shape, right.shape
    dims = len(first)
    if dims < 3 or dims != len(second) or first[:-2] != second[:-2] or first[-1] != second[-2]:
        return None
    if left.dtype != right.dtype or 0 in first or 0 in second:
        return None
    if dims == 3:
        return batches(left, right)
    made = batches(left.reshape(-1, *first[-2:]), right.reshape(-1, *second[-2:]))
    return None if made is None else made.reshape(*first[:-1], second[-1])


def _prepared_batches(first: Any, second: Any) -> _Call | None:
    """For batches of matrices that lie as the library reads them."""
    dtype = first.dtype
    if dtype != second.dtype or name_of(dtype) not in TYPES or not first.size or not second.size:
        return None
    if not (_lies_well(first) and _lies_well(second)):
        return None
    form = form_of((*first.shape[:2], second.shape[2]), dtype)
    return _Call(form, multiplying(form, first, second))


def prepared(first: Any, second: Any, over_samples: bool = False) -> _Call | None:
    """For a matrix, or rows of any number of dimensions, times a matrix, if they lie as the library reads them.

    `over_samples`: what is summed up are samples, so that the product depends on the batch in any case.
    """
    dtype = first.dtype
    if dtype != second.dtype or name_of(dtype) not in TYPES or second.ndim != 2 or first.ndim < 2 or not first.size:
        return None
    if first.ndim > 2 and not first.flags.c_contiguous:
        return None
    inner, columns = second.shape
    rows = first.size // first.shape[-1]
    if inner != first.shape[-1] or not second.size or _is_odd(dtype, rows, inner, columns):
        return None
    matrix = first if first.ndim == 2 else form_of((rows, inner), dtype)
    if not (_lies_well(matrix) and _lies_well(second)):
        return None
    target = form_of((rows, columns), dtype)
    return _Call(form_of((*first.shape[:-1], columns), dtype), _planned_product(target, matrix, second, over_samples))


def _planned_product(target: Any, first: Any, second: Any, over_samples: bool) -> Product:
    """What multiplies matrices of these forms: by a plan that is kept, where there is one for where they lie.

    Without it the library looks each time for the way to multiply them, which takes longer than to begin with it.
    """
    in_order = REPRODUCIBILITY.product is not None and not over_samples
    by_library = (
        rows_product(target, first, second) if in_order else multiplying(target, first, second, False, over_samples)
    )
    name = name_of(target.dtype)
    if name not in blaslt.TYPES or REPRODUCIBILITY.level is not None:
        return by_library
    (rows, inner), columns = first.shape, second.shape[1]
    try:
        places = placed(first), placed(second)
        left, right = (blaslt.Matrix(bool(turned), step) for turned, step, _ in places)
        by_plan = blaslt.Product(name, rows, inner, columns, left, right, False, CHOICES.shortened_products).multiply
    except blaslt.Refused:
        return by_library

    def multiply(result: int, left: int, right: int) -> None:
        (by_library if (result | left | right) & _ALIGNED else by_plan)(result, left, right)

    return multiply


def _is_odd(dtype: Any, rows: int, inner: int, columns: int) -> bool:
    """Whether `_even_product` is quicker."""
    if REPRODUCIBILITY.product is not None:
        return False
    return bool(dtype.itemsize == 2 and (rows | inner | columns) % PACK and rows * inner * columns >= _WORTHWHILE)


def _prepared_otherwise(left: DeviceArray, right: DeviceArray) -> DeviceArray | None:
    """The product of what has to be laid out first, of batches, and of vectors."""
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
        if _is_odd(dtype, rows, inner, columns):
            return _even_product(left, right)
        result, left, right = empty((rows, columns), dtype), laid_out(left), laid_out(right)
        if REPRODUCIBILITY.product is None:
            return _multiplied(result, left, right)
        rows_product(result.form, left.form, right.form)(result.pointer, left.pointer, right.pointer)
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


_products: dict[Any, Product] = of_level({})


def _multiplied(result: DeviceArray, left: DeviceArray, right: DeviceArray) -> DeviceArray:
    """The product of matrices, or of batches of them, that are laid out, in `result`."""
    target, first, second = result.form, left.form, right.form
    key = (
        target.dtype, target.shape, target.strides, first.shape, first.strides, second.strides,
        CHOICES.shortened_products,
    )  # fmt: skip
    found = _products.get(key)
    if found is None:
        if len(_products) >= _MOST_CALLS:
            _products.clear()
        found = _products[key] = multiplying(target, first, second)
    found(result.pointer, left.pointer, right.pointer)
    return result


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
    return _multiplied(empty((count, rows, columns), left.form.dtype), laid_out(left), laid_out(right))


def laid_out(array: DeviceArray) -> DeviceArray:
    """A matrix, or several, in one of the two forms that the library reads: rows, or columns, without gaps inside."""
    return array if _lies_well(array.form) else array.copy()


def _lies_well(form: Any) -> bool:
    item = form.itemsize
    outer, inner = form.strides[-2:]
    rows, columns = form.shape[-2:]
    by_rows = (inner == item or columns == 1) and (outer >= columns * item or rows == 1)
    by_columns = (outer == item or rows == 1) and (inner >= rows * item or columns == 1)
    return bool(outer % item == 0 and inner % item == 0 and form.strides[0] >= 0 and (by_rows or by_columns))


# ----- matrices of odd sizes ------------------------------------------------------------------------------------------

PACK = 8
"""So many 16-bit floats are read at a time."""
_WORTHWHILE = 1 << 33
"""From so many multiplications on copies of odd matrices cost less than the library's kernels for such matrices."""


def _even_product(left: DeviceArray, right: DeviceArray) -> DeviceArray:
    """A product of 16-bit floats of odd sizes: that of matrices with some zeros more, without what these add to it.

    The library's best kernels read 16 bytes at a time, from places that are multiples of that.
    """
    (rows, inner), columns = left.form.shape, right.form.shape[1]
    more_rows, more_inner, more_columns = -rows % PACK, -inner % PACK, -columns % PACK
    first, second = with_zeros(left, more_rows, more_inner), with_zeros(right, more_inner, more_columns)
    result = _multiplied(empty((rows + more_rows, columns + more_columns), left.form.dtype), first, second)
    return resized(result, rows, columns) if more_rows or more_columns else result


def with_zeros(matrix: DeviceArray, rows: int, columns: int) -> DeviceArray:
    """A matrix with some rows and columns of zeros more, in the form that it lies in."""
    height, width = matrix.form.shape
    matrix = laid_out(matrix)
    by_rows = matrix.form.strides[1] == matrix.form.itemsize
    if not (rows or columns):
        return matrix
    if by_rows:
        return resized(matrix, height + rows, width + columns)
    return resized(matrix.T, width + columns, height + rows).T
