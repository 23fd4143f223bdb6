"""Products of matrices in a fixed order, run by NumPy: see `products/fixed_order.py`, `tree.py` and `gemm.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .fused import fma, fma_of_wide

Array = Any

_SINGLE = np.dtype(np.float32)


def chained(left: Array, right: Array, initial: Array | None = None) -> Array:
    """`left @ right` of (..., rows, depth) and (..., depth, columns): each element one chain in the order of its sum.

    A chain begins with `initial`, or zero, and each step is rounded once.
    """
    dtype = left.dtype
    shape = *np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1]
    step: Callable[[Array, Array, Array], Array] = fma
    total = np.zeros(shape, dtype) if initial is None else np.array(np.broadcast_to(initial, shape))
    if dtype == _SINGLE:
        left, right, total, step = (
            left.astype(np.float64),
            right.astype(np.float64),
            total.astype(np.float64),
            fma_of_wide,
        )
    with np.errstate(all="ignore"):
        for k in range(left.shape[-1]):
            total = step(left[..., :, k, None], right[..., k, None, :], total)
    return total.astype(dtype)


def _flat(array: Array, reach: int) -> Array:
    """The memory from the first element of an array on."""
    return as_strided(array, (reach,), (array.itemsize,))


def fixed_order_product(dtype: str) -> Callable[..., Array]:
    """(out, left, right, sizes): out[i] = left[i] @ right[i]; `out` has no gaps."""

    def run(out: Array, left: Array, right: Array, sizes: Array) -> Array:
        matrices, rows, columns, depth, left_row, left_column, left_matrix, right_row, right_matrix = map(
            int, sizes[:9]
        )
        item = left.itemsize
        factors = as_strided(left, (matrices, rows, depth), (left_matrix * item, left_row * item, left_column * item))
        lines = as_strided(right, (matrices, depth, columns), (right_matrix * item, right_row * item, item))
        out.reshape(matrices, rows, columns)[...] = chained(factors, lines)
        return out

    return run


def few_rows_of_turned(dtype: str) -> Callable[..., Array]:
    """(out, x, weight, row step of x, row step of weight): out[m, n] = sum over k of x[m, k] * weight[n, k]."""

    def run(out: Array, x: Array, weight: Array, x_row: int, weight_row: int) -> Array:
        out[...] = chained(x, weight.T)
        return out

    return run


def tree_product(dtype: str, single: bool) -> Callable[..., Array]:
    """(out, left, right, starts, sizes): out = the sum over samples s and steps t of outer(left[s, t], right[s, t])."""

    def run(out: Array, left: Array, right: Array, starts: Array, sizes: Array) -> Array:
        steps, rows, columns, left_sample, left_step, left_row, right_sample, right_step, leaves = map(int, sizes[:9])
        samples, item = int(starts[leaves]), left.itemsize
        factors = as_strided(left, (samples, rows, steps), (left_sample * item, left_row * item, left_step * item))
        lines = as_strided(right, (samples, steps, columns), (right_sample * item, right_step * item, item))
        with np.errstate(all="ignore"):
            waiting: list[Array] = []
            for leaf in range(leaves):
                first, last = int(starts[leaf]), int(starts[leaf + 1])
                if single:
                    total = _tree(list(factors[first:last] * lines[first:last]))
                else:
                    total = _tree(list(chained(factors[first:last], lines[first:last])))
                while leaf & 1:
                    total = waiting.pop() + total
                    leaf >>= 1
                waiting.append(total)
        out[...] = waiting[0]
        return out

    return run


def _tree(values: list[Array]) -> Array:
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    return _tree(values[:middle]) + _tree(values[middle:])


def planned(product: Any, out: Array, left: Array, source: Array, bias: Array | None) -> None:
    """Run a `Product` of `cpu/linalg/gemm.py` that is one chain for each element."""
    sizes, dtype = product.sizes, np.dtype(product.dtype)
    offsets, left_offsets = product.offsets, product.left_offsets
    rows = np.arange(sizes.rows) * sizes.left_row
    starts = None if bias is None else bias.reshape(sizes.groups, sizes.rows).astype(dtype)
    from_left = _flat(
        left,
        1
        + int(left_offsets.max() + rows[-1])
        + (sizes.groups - 1) * sizes.left_group
        + (sizes.depth_batches - 1) * sizes.left_depth_batch,
    )
    reach = 0
    for group in range(sizes.groups):
        for batch in range(sizes.batches):
            count = sizes.last_columns if batch == sizes.batches - 1 else sizes.columns
            columns, places = product.columns.offsets[:count], product.columns.places[:count]
            total = None if starts is None else starts[group][:, None]
            for depth_batch in range(sizes.depth_batches):
                depth = sizes.last_depth if depth_batch == sizes.depth_batches - 1 else sizes.depth
                begin = group * sizes.left_group + depth_batch * sizes.left_depth_batch
                factors = from_left[begin + rows[:, None] + left_offsets[:depth]].astype(dtype)
                begin = group * sizes.source_group + batch * sizes.source_batch + depth_batch * sizes.source_depth_batch
                at = begin + offsets[:depth, None] + columns
                lines = _flat(source, 1 + int(at.max()))[at]
                total = chained(factors, lines, total)
            at = group * sizes.out_group + batch * sizes.out_batch
            at = at + (np.arange(sizes.rows) * sizes.out_row)[:, None] + places
            reach = max(reach, 1 + int(at.max()))
            _flat(out, reach)[at] = total
