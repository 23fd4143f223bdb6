"""Products and sums whose elements do not depend on their neighbours: those of `reproducible("batch")`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...._codegen.products.fixed_order import COLUMNS, FEW, ROWS, Sizes, few_rows_of_turned, fixed_order_product
from ...._codegen.products.gemm import as_array
from ...._codegen.rows.reduce import sums_in_order
from ...._core.arrays.quick import joint_shape
from ..elementwise.copy import copy_into
from .gemm import Product, plan

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
NAMES = {_SINGLE: "float32", _DOUBLE: "float64"}
_MANY_ROWS = 64
"""More rows than these are worth the packing of both matrices."""


def product(left: Any, right: Any) -> Any:
    """`np.matmul(left, right)`; each element is summed up in the order of the summed dimension."""
    if left.dtype.kind not in "fc" or right.dtype is not left.dtype:
        return np.matmul(left, right)
    if left.dtype.kind == "c":
        return complex_product(product, left, right)
    if left.ndim == 1:
        found = product(left[None], right)
        return found[..., 0, :] if right.ndim > 1 else found[..., 0]
    if right.ndim == 1:
        return product(left, right[:, None])[..., 0]
    if left.dtype not in (_SINGLE, _DOUBLE):
        return product(left.astype(_SINGLE), right.astype(_SINGLE)).astype(left.dtype)
    if left.shape[-1] != right.shape[-2]:
        return np.matmul(left, right)  # which says what does not fit
    batch = joint_shape(left.shape[:-2], right.shape[:-2])
    rows, depth, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    shape = (*batch, rows, columns)
    if not depth or 0 in shape:
        return np.zeros(shape, left.dtype)
    count, item = math.prod(batch), left.itemsize
    if columns > 1 and math.prod(right.shape[:-2]) == 1:
        matrix = right.reshape(depth, columns)
        return matrix_product(left.reshape(-1, depth), matrix).reshape(shape)
    left, left_matrix = _as_stack(left, batch, count)
    right, right_matrix = _as_stack(right, batch, count)
    if right.strides[-1] != item and columns > 1:
        right = _dense(right)
        right_matrix = depth * columns if len(right) > 1 else 0
    steps = left.strides[-2] // item, left.strides[-1] // item, left_matrix, right.strides[-2] // item, right_matrix
    out = np.empty(shape, left.dtype)
    return fixed_order_product(NAMES[left.dtype])(out, left, right, _table(count, rows, columns, depth, *steps))


@functools.lru_cache(maxsize=1024)
def _table(count: int, rows: int, columns: int, *others: int) -> Any:
    """All that depends on sizes alone: networks repeat theirs."""
    return as_array(Sizes._make((count, rows, columns, *others, -(-rows // ROWS), -(-columns // COLUMNS))))


def matrix_product(left: Any, right: Any) -> Any:
    """The product of two matrices of float32 or float64, none of which is empty, by tiles that are packed first.

    Each element is the same chain as in `fixed_order_product`, whichever way round the matrices are multiplied.
    """
    left, right = in_elements(left), in_elements(right)
    (rows, depth), columns, item = left.shape, right.shape[1], left.itemsize
    if rows <= FEW and right.strides[0] == item and left.strides[1] == item and depth > 1:
        few = few_rows_of_turned(NAMES[left.dtype])
        out = np.empty((rows, columns), left.dtype)
        return few(out, left, right.T, left.strides[0] // item, right.strides[1] // item)
    turned = False
    if right.strides[1] != item and columns > 1:
        turned = right.strides[0] == item
        if not turned:
            right = _dense(right)
    out = np.empty((rows, columns), left.dtype)
    left_steps = left.strides[0] // item, left.strides[1] // item
    line = right.strides[1 if turned else 0] // item
    plan = _plan(NAMES[left.dtype], rows, depth, columns, left_steps, line, turned)
    plan.run(out, left, right)
    return out


def _dense(array: Any) -> Any:
    """A copy whose elements lie one after another."""
    result = np.empty(array.shape, array.dtype)
    return result if copy_into(result, array) else array.copy("C")


@functools.lru_cache(maxsize=1024)
def _plan(dtype: str, rows: int, depth: int, columns: int, left: tuple[int, int], line: int, turned: bool) -> Product:
    """`line`: the distance from one row of the right matrix to the next; `turned`: of one column to the next."""
    down, across = (1, line) if turned else (line, 1)
    return plan(
        dtype,
        rows=rows,
        offsets=np.arange(depth) * down,
        left_offsets=np.arange(depth) * left[1],
        places=np.arange(columns),
        column_offsets=np.arange(columns) * across,
        out_row=columns,
        left_row=left[0],
        limit=(depth - 1) * down + (columns - 1) * across + 1,
        chained=True,
        turned=turned,
    )


def step_product(right: Any) -> Callable[[Any, Any, Any], object]:
    """What multiplies rows without gaps, again and again other ones, with one matrix: `(left, right, out)`."""
    (depth, columns), item, kernel = right.shape, right.itemsize, fixed_order_product(NAMES[right.dtype])
    dense = right if right.strides[1] == item and right.flags.aligned else _dense(right)
    tables: dict[int, Any] = {}

    def run(left: Any, _: Any, out: Any) -> None:
        rows = len(left)
        if rows > _MANY_ROWS:
            out[...] = matrix_product(left, dense)
            return
        table = tables.get(rows)
        if table is None:
            table = tables[rows] = _table(1, rows, columns, depth, depth, 1, 0, dense.strides[0] // item, 0)
        kernel(out, left, dense, table)

    return run


def _as_stack(matrices: Any, batch: tuple[int, ...], count: int) -> tuple[Any, int]:
    """Matrices as an array of three dimensions, and the distance in elements from one to the next: 0 for one only."""
    matrices = in_elements(matrices)
    if math.prod(matrices.shape[:-2]) == 1:
        return matrices.reshape(1, *matrices.shape[-2:]) if matrices.ndim != 3 else matrices, 0
    stack = np.broadcast_to(matrices, (*batch, *matrices.shape[-2:])).reshape(count, *matrices.shape[-2:])
    return stack, stack.strides[0] // stack.itemsize


def in_elements(array: Any) -> Any:
    """`array`, if it is aligned and its strides are numbers of elements; else a copy of it."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        return array
    item = array.itemsize
    for step in array.strides:
        if step % item or step < 0:
            return np.ascontiguousarray(array)
    return array if flags.aligned else np.ascontiguousarray(array)


def complex_product(multiply: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """The product of complex operands, made of four products that `multiply` makes of their parts."""
    result = multiply(left.real, right.real) - multiply(left.imag, right.imag) + 0j
    result = result.astype(left.dtype, copy=False)
    result.imag = multiply(left.real, right.imag) + multiply(left.imag, right.real)
    return result


def chain(array: Any, dims: tuple[int, ...] | None, keepdims: bool) -> Any:
    """The sum of floating-point numbers along `dims`, in float64, in an order that these alone decide."""
    given = array.dtype
    shape, order, sizes = _parts_of_chain(array.shape, dims, keepdims)
    if not array.size:
        return np.zeros(shape, given)
    if given not in NAMES:
        array = array.astype(_SINGLE)
    if order is not None:
        array = array.transpose(order)
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned):
        array = _dense(array)
    out = np.empty(shape, array.dtype)
    sums_in_order(NAMES[array.dtype], sizes[2] == 1)(out, array, *sizes)
    return out.astype(given, copy=False)


@functools.lru_cache(1024)
def _parts_of_chain(
    shape: tuple[int, ...], dims: tuple[int, ...] | None, keepdims: bool
) -> tuple[list[int], tuple[int, ...] | None, list[int]]:
    """The result's shape, the order of dimensions that are to be turned, and sizes before, along and behind the sum."""
    ndim = len(shape)
    summed = list(range(ndim)) if dims is None else sorted(each % ndim for each in dims)
    kept = [each for each in range(ndim) if each not in summed]
    result = [1 if each in summed else shape[each] for each in range(ndim) if keepdims or each not in summed]
    first, last = (summed[0], summed[-1]) if summed else (0, -1)
    order = None
    if last - first + 1 != len(summed):  # those in between come before them
        order = (*kept, *summed)
        shape, first, last = tuple(shape[each] for each in order), len(kept), ndim - 1
    return (
        result,
        order,
        [math.prod(shape[each]) for each in (slice(first), slice(first, last + 1), slice(last + 1, None))],
    )
