"""Sums over the samples of a batch as a tree: what each of 1, 2, 4, ... processes sums up is a subtree of it.

`reproducible("batch")` adds up the gradients of parameters in this way. The samples are halved again and again, the
first half being the smaller one where they are odd; sums of halves are added, each in the dtype of the result.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...._codegen.ir import COMPILES
from ...._codegen.products.gemm import as_array
from ...._codegen.products.tree import COLUMNS, PANEL_COLUMNS, PANEL_ROWS, ROWS, TOGETHER, Sizes, tree_product
from ..elementwise.copy import contiguous, copy_into
from ..indexing.gather import add_slices
from .fixed_order import NAMES, chain, complex_product, in_elements, product

_SINGLE = np.dtype(np.float32)
_NARROW = 16
"""Sums of fewer columns are made by NumPy: a generated kernel would fill no vector."""
_FEW = 1 << 14
"""Sums of fewer numbers, too: a generated kernel would take longer to call."""


@functools.lru_cache(1024)
def _subtrees(count: int, most: int) -> tuple[int, Any]:
    """The level, counted from the root, on which all subtrees have at most `most` samples, and where these begin.

    For 2 it is the lowest level on which all have a sample at all.
    """
    levels = 0
    while -(-count >> levels) > most:
        levels += 1
    starts = [0, count]
    for _ in range(levels):
        halves = [(begin, begin + (end - begin) // 2) for begin, end in itertools.pairwise(starts)]
        starts = [each for pair in halves for each in pair] + [count]
    return levels, np.array(starts, np.int64)


def samples_product(left: Any, right: Any) -> Any:
    """The sum over samples and steps of the outer products of `left[sample, step]` and `right[sample, step]`.

    The steps of a sample are summed up in their order, the samples in a tree.
    """
    if left.dtype.kind == "c":
        return complex_product(samples_product, left, right)
    if left.dtype not in NAMES:
        return samples_product(left.astype(_SINGLE), right.astype(_SINGLE)).astype(left.dtype)
    (samples, steps, rows), columns, item = left.shape, right.shape[2], left.itemsize
    if not left.size or not right.size:
        return np.zeros((rows, columns), left.dtype)
    if samples == 1:
        return product(left[0].T, right[0])
    left, right = in_elements(left), in_elements(right)
    if right.strides[2] != item and columns > 1:
        right = np.ascontiguousarray(right)
    if COMPILES and steps > 1:
        left, right = _in_panels(left, PANEL_ROWS), _in_panels(right, PANEL_COLUMNS)
    left_steps, right_steps = left.strides, right.strides
    strides = left_steps[0] // item, left_steps[-2] // item, left_steps[-1] // item
    table, starts = _table(samples, steps, rows, columns, *strides, right_steps[0] // item, right_steps[-2] // item)
    out = np.empty((rows, columns), left.dtype)
    return tree_product(NAMES[left.dtype], steps == 1)(out, left, right, starts, table)


@functools.lru_cache(1024)
def _table(samples: int, steps: int, rows: int, columns: int, *strides: int) -> tuple[Any, Any]:
    """All that depends on sizes alone, and where subtrees begin: networks repeat their sizes."""
    levels, starts = _subtrees(samples, TOGETHER if steps == 1 else 2)
    blocks = -(-rows // ROWS), -(-columns // COLUMNS)
    sizes = Sizes._make((steps, rows, columns, *strides, 1 << levels, levels, *blocks))
    return as_array(sizes), starts


def _in_panels(array: Any, width: int) -> Any:
    """(samples, steps, columns) as (samples, panels, steps, width), the last panel filled up with zeros."""
    samples, steps, columns = array.shape
    whole, rest = divmod(columns, width)
    panels = np.empty((samples, whole + (rest > 0), steps, width), array.dtype)
    if array.strides[2] != array.itemsize:
        array = contiguous(array)
    if whole:
        source = array[..., : whole * width].reshape(samples, steps, whole, width).transpose(0, 2, 1, 3)
        copy_into(panels[:, :whole], source)
    if rest:
        panels[:, whole, :, :rest] = array[..., whole * width :]
        panels[:, whole, :, rest:] = 0
    return panels


def total(array: Any, dims: tuple[int, ...] | None, keepdims: bool) -> Any:
    """The sum of floating-point or complex numbers along `dims`; None: all.

    The first dimension are samples, whose sum is a tree; within a sample numbers are summed up in float64, in order.
    """
    if array.dtype.kind == "c":
        real, imaginary = total(array.real, dims, keepdims), total(array.imag, dims, keepdims)
        result = np.empty(np.shape(real), array.dtype)
        result.real, result.imag = real, imaginary
        return result
    within, shape = _parts_of_total(array.shape, dims, keepdims)
    if within is None:
        return chain(array, dims, keepdims)
    of_samples = chain(array, within, True) if within else array
    return (of_samples[0].copy() if len(array) == 1 else samples_sum(of_samples)).reshape(shape)


@functools.lru_cache(1024)
def _parts_of_total(
    shape: tuple[int, ...], dims: tuple[int, ...] | None, keepdims: bool
) -> tuple[tuple[int, ...] | None, list[int]]:
    """The dimensions to be summed up within samples, None if samples are not added up, and the result's shape."""
    ndim = len(shape)
    summed = range(ndim) if dims is None else sorted(each % ndim for each in dims)
    kept = [1 if each in summed else shape[each] for each in range(ndim) if keepdims or each not in summed]
    of_samples = 0 not in shape and summed and not summed[0]
    return (tuple(summed[1:]) if of_samples else None), kept


def samples_sum(array: Any) -> Any:
    """The sum over the first dimension, of which there is more than one, of floating-point numbers."""
    if array.itemsize == 2:
        return samples_sum(array.astype(_SINGLE)).astype(array.dtype)
    count = len(array)
    if array.size > _FEW and array[0].size >= _NARROW and array.dtype in NAMES:
        ones = np.broadcast_to(array.dtype.type(1), (count, 1, 1))
        rows = np.ascontiguousarray(array).reshape(count, 1, -1)
        return samples_product(ones, rows).reshape(array.shape[1:])
    levels, firsts, two = _pairs(count)
    if two is None:
        sums = array[0::2] + array[1::2]
    else:
        sums = array[firsts]
        sums[two] += array[firsts[two] + 1]
    for _ in range(levels):
        sums = sums[0::2] + sums[1::2]
    return sums[0]


@functools.lru_cache(1024)
def _pairs(count: int) -> tuple[int, Any, Any]:
    """The level of the lowest subtrees, where they begin, and which have two samples (None: all)."""
    levels, starts = _subtrees(count, 2)
    firsts, sizes = starts[:-1], np.diff(starts)
    return levels, firsts, None if (sizes == 2).all() else np.flatnonzero(sizes == 2)


def samples_total(count: int, of_sample: Callable[[int], Any]) -> Any:
    """The sum of what a function gives for each of `count` samples: new arrays, of which few are alive at a time."""
    waiting: list[Any] = []
    _, starts = _subtrees(count, 2)
    for number, begin in enumerate(starts[:-1]):
        total = of_sample(int(begin))
        if starts[number + 1] - begin == 2:
            total = np.add(total, of_sample(int(begin) + 1), total)
        while number & 1:
            total = np.add(waiting.pop(), total, total)
            number >>= 1
        waiting.append(total)
    return waiting[0]


def rows_sum(indices: Any, rows: Any, count: int) -> Any:
    """An array of `count` rows, to which `rows[i]` is added at `indices[i]`, in a tree over the first dimension.

    The rows of one sample are added in their order.
    """
    samples, width = len(indices), rows.shape[-1]
    total = np.zeros((count, width), rows.dtype)
    if not indices.size:
        return total
    levels, starts = _subtrees(samples, 1)
    # The path to each sample: its bits say which half it is in.
    path = np.zeros(samples, np.int64)
    lengths = np.diff(starts)
    path[starts[:-1][lengths == 1]] = np.flatnonzero(lengths)
    keys = (indices.reshape(samples, -1).astype(np.int64) << levels | path[:, None]).reshape(-1)
    keys, places = np.unique(keys, return_inverse=True)
    sums = np.zeros((len(keys), width), rows.dtype)
    places, added = np.ascontiguousarray(places.reshape(-1), np.int64), rows.reshape(-1, width)
    if not add_slices(sums, 0, places, added):  # one after the other, as NumPy does
        np.add.at(sums, places, added)
    at = np.arange(len(keys))
    for _ in range(levels):
        keys >>= 1
        first = np.concatenate(([True], keys[1:] != keys[:-1]))
        second = np.flatnonzero(~first)
        if second.size:
            sums[at[second - 1]] += sums[at[second]]
            keys, at = keys[first], at[first]
    total[keys] = sums[at] + 0  # negative zeros are gone: a process without such an index has zero there
    return total
