"""Elements read and written at positions along a dimension, by generated kernels.

Positions have to be in range: `within` says whether they are. Functions return None, or False, where no kernel fits:
other dtypes, no elements, or dimensions that cannot be seen as three.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ...._codegen.elements.gather import GRID, LINES, SINGLE, gather_along, positions_within, scatter_along
from ...._codegen.ir import COMPILES
from ...._codegen.types import SCALARS
from ...._core.backend import LARGE, undispatched
from ...._core.storage import are_apart
from ..elementwise.copy import BITS, copy_into
from ..runtime.dtypes import float_name, wide_type

Array = Any
Sizes = tuple[int, ...]
Plan = tuple[Any, Sizes]
"""A kernel, and the numbers that it is called with."""

_INDICES = {np.dtype(np.int64): "int64", np.dtype(np.int32): "int32"}
_NO_POSITION = -1
_CHECKS: dict[np.dtype[Any], Any] = {}
"""The kernels that look at positions, by the dtype of these."""


may_share_memory = undispatched(np.may_share_memory)


def within(index: Array, size: int) -> bool:
    """Whether all positions are known to be in [0, size)."""
    check = _CHECKS.get(index.dtype)
    if check is None:
        if index.dtype not in _INDICES:
            return False
        check = _CHECKS[index.dtype] = positions_within(_INDICES[index.dtype])
    flag = _FLAGS[0]
    if not index.flags.c_contiguous:
        index = np.ascontiguousarray(_without_repetitions(index))
    check(flag, index, index.size, size)
    if flag[0]:
        _FLAGS[0] = np.zeros(1, np.int64)
        return False
    return True


def _without_repetitions(index: Array) -> Array:
    """A view of an array in which each position stands once for the dimensions that it is expanded along."""
    return index[tuple([slice(1) if not step else slice(None) for step in index.strides])] if index.size else index


_FLAGS = [np.zeros(1, np.int64)]
"""What a check sets when a position is wrong, and nobody sets back: then there is another for the next ones. A check at
the same time in another thread may see it as well; it says that it does not know, and somebody else looks again."""


def _merged(shape: Sizes, strides: Sizes, dims: range) -> int | None:
    """The step of neighbouring dimensions seen as one; None: they cannot be."""
    step: int | None = None
    reach = 0
    for dim in reversed(dims):
        size, stride = shape[dim], strides[dim]
        if size == 1:
            continue
        if step is None:
            step = stride
        elif stride != reach:
            return None
        reach = stride * size
    return 0 if step is None else step


@lru_cache(1024)
def _steps(shape: Sizes, strides: Sizes, itemsize: int, dim: int) -> Sizes | None:
    """The steps of an array seen in three dimensions, `dim` being the middle one; None: it cannot be."""
    outer, inner = _merged(shape, strides, range(dim)), _merged(shape, strides, range(dim + 1, len(shape)))
    if outer is None or inner is None:
        return None
    return outer // itemsize, strides[dim] // itemsize, inner // itemsize


def _sizes(shape: Sizes, dim: int) -> tuple[int, int, int]:
    outer = inner = 1
    for size in shape[:dim]:
        outer *= size
    for size in shape[dim + 1 :]:
        inner *= size
    return outer, shape[dim], inner


def _form(inner: int, of_index: Sizes, *others: Sizes) -> str:
    if inner == 1 and of_index[1] == 1 and all(steps[1] == 1 for steps in others):
        return SINGLE
    return LINES if of_index[2] == 0 and all(steps[2] == 1 for steps in others) else GRID


# A plan is looked up once for a call, by all that it depends on: for few elements that is most of the work.


@lru_cache(1024)
def _gather_plan(
    shape: Sizes, index_strides: Sizes, index: np.dtype[Any], strides: Sizes, itemsize: int, dim: int
) -> Plan | None:
    """How a result of `shape` is gathered along `dim` from an array with strides."""
    bits, kind = BITS.get(itemsize), _INDICES.get(index)
    if bits is None or kind is None or 0 in shape:
        return None
    of_index, of_x = _steps(shape, index_strides, index.itemsize, dim), _steps(shape, strides, itemsize, dim)
    if of_index is None or of_x is None:
        return None
    sizes = _sizes(shape, dim)
    return gather_along(bits, kind, _form(sizes[2], of_index, of_x)), (*sizes, *of_x, *of_index)


@lru_cache(1024)
def _scatter_plan(
    shape: Sizes, index_strides: Sizes, to: Sizes, strides: Sizes, types: tuple[np.dtype[Any], ...], how: str, dim: int
) -> Plan | None:
    """How values of `shape` are brought to a target, from `strides` to those that it has.

    `types` are those of the target, the values and the index.
    """
    of_target, of_x, of_index = (
        _steps(shape, steps, each.itemsize, dim)
        for steps, each in zip((to, strides, index_strides), types, strict=True)
    )
    names = [BITS.get(each.itemsize) if how == "write" else each.name for each in types[:2]]
    kind = _INDICES.get(types[2])
    if of_target is None or of_x is None or of_index is None or kind is None:
        return None
    if (types[0].kind == "b" and how != "write") or not SCALARS.keys() >= set(names):
        return None
    sizes = _sizes(shape, dim)
    form = _form(sizes[2], of_index, of_x, of_target)
    return scatter_along(*names, kind, form, how), (*sizes, *of_target, *of_x, *of_index, _NO_POSITION)


def _strides_along(positions: Array, dim: int, ndim: int) -> Sizes:
    """The strides of a vector of positions along `dim` that are the same everywhere else."""
    strides: Sizes = (0,) * dim + positions.strides + (0,) * (ndim - dim - 1)
    return strides


def gathered(array: Array, dim: int, index: Array) -> Array | None:
    """The elements at the positions `index` along `dim`; the index has as many dimensions as the array."""
    shape = index.shape
    plan = _gather_plan(shape, index.strides, index.dtype, array.strides, array.itemsize, dim)
    if plan is None:
        if _may_be_copied(array, index):
            return gathered(np.ascontiguousarray(array), dim, index)
        return None if index.flags.c_contiguous else gathered(array, dim, index.copy())
    if not within(index, array.shape[dim]):
        return None
    return plan[0](np.empty(shape, array.dtype), array, index, *plan[1])


_MOST_COPIED = 4
"""An array up to so many times as large as what is read or written is copied, where kernels cannot walk through it."""


def _may_be_copied(array: Array, others: Array) -> bool:
    """Whether an array has gaps, and is not so large beside what is read or written that a copy would cost more."""
    return not array.flags.c_contiguous and array.size <= _MOST_COPIED * others.size


def selected(array: Array, dim: int, positions: Array) -> Array | None:
    """The slices at `positions`, a vector, along `dim`."""
    shape = (*array.shape[:dim], positions.size, *array.shape[dim + 1 :])
    along = _strides_along(positions, dim, array.ndim)
    plan = _gather_plan(shape, along, positions.dtype, array.strides, array.itemsize, dim)
    if plan is not None:
        return plan[0](np.empty(shape, array.dtype), array, positions, *plan[1])
    if array.shape[dim] > _MOST_COPIED * positions.size or array.flags.c_contiguous:
        return None
    return selected(np.ascontiguousarray(array), dim, positions)


@lru_cache(256)
def _places_plan(shape: Sizes, counts: Sizes, itemsize: int, index: np.dtype[Any]) -> tuple[Any, Sizes, Sizes] | None:
    """The kernel for an array of `shape` without gaps, the shape that results, and numbers for the kernel."""
    bits, kind, rank = BITS.get(itemsize), _INDICES.get(index), len(counts)
    if bits is None or kind is None or 0 in shape or 0 in counts:
        return None
    lead, plane = shape[:-rank], math.prod(shape[-rank:])
    return gather_along(bits, kind, SINGLE), lead + counts, (math.prod(lead), math.prod(counts), 1, plane, *_SINGLE)


_SINGLE = 1, 1, 0, 1, 1
"""The last steps of an array and of an index for both of which elements follow each other."""


def selected_places(array: Array, places: Array, counts: Sizes) -> Array | None:
    """The elements at `places`, a vector, of the last dimensions seen as one; `counts` along each of these."""
    if not array.flags.c_contiguous:
        return None
    plan = _places_plan(array.shape, counts, array.itemsize, places.dtype)
    return None if plan is None else plan[0](np.empty(plan[1], array.dtype), array, places, *plan[2])


def embedding(weight: Array, indices: Array, *of_gradients: Any) -> Array | None:
    """The rows of a table whose numbers are in `indices`; None also where some of them are not its rows' numbers."""
    if indices.size * weight.shape[1] < LARGE or not within(indices, weight.shape[0]):
        return None
    done = selected(weight, 0, indices.reshape(-1))
    return None if done is None else done.reshape(*indices.shape, weight.shape[1])


def scattered(target: Array, dim: int, index: Array, values: Array, how: str) -> bool:
    """Bring `values` to the positions `index` along `dim` of `target` ("write", "add", ...); whether it was done.

    Values may reach further than the index in every dimension.
    """
    if not index.ndim == values.ndim == target.ndim > 0 or not index.size or not within(index, target.shape[dim]):
        return False
    if index.shape != values.shape:
        values = values[tuple([slice(size) for size in index.shape])]
    if _scatter(target, dim, index, index.strides, values, how):
        return True
    return not index.flags.c_contiguous and _scatter(target, dim, copy := index.copy(), copy.strides, values, how)


def add_slices(target: Array, dim: int, positions: Array, values: Array) -> bool:
    """Add the slices of `values` to those of `target` at `positions`, a vector, along `dim`; whether it was done."""
    if not COMPILES or values.ndim != target.ndim or not values.size or not within(positions, target.shape[dim]):
        return False
    return _scatter(target, dim, positions, _strides_along(positions, dim, target.ndim), values, "add")


def _scatter(target: Array, dim: int, index: Array, along: Sizes, values: Array, how: str) -> bool:
    """Write `values` into `target` at positions along `dim`, or combine them; positions have the strides `along`."""
    dtype, shape = target.dtype, values.shape
    if dtype is not values.dtype:
        return False
    if not are_apart(target, values) and may_share_memory(target, values):
        return False
    if not are_apart(target, index) and may_share_memory(target, index):
        return False
    wide = target
    if dtype.itemsize == 2 and how != "write" and float_name(target) is not None:
        wide = _converted(target, np.dtype(np.float32))
    types = wide.dtype, dtype, index.dtype
    plan = _scatter_plan(shape, along, wide.strides, values.strides, types, how, dim)
    if plan is None and not values.flags.c_contiguous:
        values = np.ascontiguousarray(values)
        plan = _scatter_plan(shape, along, wide.strides, values.strides, types, how, dim)
    if plan is None and wide is target and _may_be_copied(target, values):
        wide = np.ascontiguousarray(target)
        plan = _scatter_plan(shape, along, wide.strides, values.strides, types, how, dim)
    if plan is None:
        return False
    plan[0](wide, values, index, *plan[1])
    if wide is not target:
        target[...] = wide
    return True


def embedding_backward(rows: Array, indices: Array, count: int, skipped: int, scale_grad_by_freq: bool) -> Array | None:
    """For each of `count` numbers the sum of the rows with that index, but for the number that is skipped.

    `rows` has one dimension more than `indices`.
    """
    name, kind, width = float_name(rows), _INDICES.get(indices.dtype), rows.shape[-1]
    if scale_grad_by_freq or name is None or kind is None or not rows.size or not within(indices, count):
        return None
    wide = wide_type(rows.dtype)
    total = np.zeros((count, width), wide)
    kernel = scatter_along("float64" if wide.itemsize == 8 else "float32", name, kind, LINES, "add")
    sizes, steps = (1, indices.size, width), (0, width, 1)
    kernel(total, np.ascontiguousarray(rows), np.ascontiguousarray(indices), *sizes, *steps, *steps, 0, 1, 0, skipped)
    return total if wide is rows.dtype else _converted(total, rows.dtype)


def _converted(array: Array, dtype: np.dtype[Any]) -> Array:
    result = np.empty(array.shape, dtype)
    return result if copy_into(result, array) else array.astype(dtype)
