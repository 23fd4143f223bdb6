"""Sums, products and extremes of large arrays; of small ones what would be several calls of NumPy."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...._codegen.reduction import REDUCTIONS
from ...._codegen.rows.reduce import COLUMN_CHUNK, ROW_CHUNK, reduce_columns, reduce_rows
from ...._codegen.rows.reduce import bounds as _bounds
from ...._codegen.rows.variance import variances as _variances
from ...._codegen.types import SCALARS
from ..memory.workspace import DIRECT, Workspace
from ..runtime.dtypes import name_of_type, wide_type

_MOST_SPREAD = 2**22
"""So many elements that are repeated are written out to be reduced."""
_KINDS = frozenset(("add", "multiply", "maximum", "minimum", "square", "present"))
_DOUBLE = np.dtype(np.float64)


_INTEGERS = {np.dtype(name): name for name, scalar in SCALARS.items() if not scalar.is_float and name != "bool"}


def reduced(
    kind: str, array: Any, dims: tuple[int, ...] | None, dtype: np.dtype[Any], workspace: Workspace = DIRECT
) -> Any:
    """`array` reduced by the ufunc called `kind` to `dtype`; None: NumPy has to do it.

    The reduced dimensions are gone from the result. Sums and products of floats are computed in float64. There are
    three kinds more: the sums of the squares and of the elements that are "present", which NaN is not, and the "norm".
    """
    if workspace is DIRECT:
        key = kind, array.shape, array.strides, dims, array.dtype.num, dtype.num
        try:
            known = _KNOWN[key]
        except KeyError:
            if len(_KNOWN) >= _MOST_KNOWN:
                _KNOWN.clear()
            known = _KNOWN[key] = _known(kind, array, dims, dtype)
        if known is not None:
            passes, is_final, back = known
            done = array
            for kernel, shape, made, numbers in passes:
                done = kernel(np.empty(shape, made), done, *numbers, array)
            if back is None:
                return done if is_final else _finished(kind, done, dtype)
            return np.asarray(_finished(kind, done.transpose(back), dtype), order="C")
    summed = _SUMMED.get(kind, kind)
    computed = _type_to_compute_in(summed, array.dtype, dtype)
    laid = None if computed is None else _laid_out(array, dims)
    if computed is None or laid is None:
        return None
    array, _, runs, back = laid
    for first, last in runs:
        array = _reduced_run(summed, array, first, last, computed, workspace)
        summed = REDUCTIONS[summed].join  # of what elements stand for
    turned = _finished(kind, array.transpose(back), dtype)
    return turned if turned.flags.c_contiguous else np.asarray(turned, order="C")


_SUMMED = {"norm": "square"}
_MOST_KNOWN = 1024
_Known = tuple[list[tuple[Any, Any, np.dtype[Any], tuple[int, ...]]], bool, list[int] | None]
_KNOWN: dict[Any, _Known | None] = {}
"""How arrays without gaps are reduced: by which kernels, the shape and the dtype that each makes, numbers for it;
whether that is all; and the order of the result's dimensions, if they are in another."""


def _known(kind: str, array: Any, dims: tuple[int, ...] | None, dtype: np.dtype[Any]) -> _Known | None:
    """How such an array is reduced; None: it has gaps, or NumPy has to do it."""
    summed = _SUMMED.get(kind, kind)
    computed = _type_to_compute_in(summed, array.dtype, dtype)
    laid = None if computed is None else _laid_out(array, dims)
    if computed is None or laid is None or not np.may_share_memory(laid[0], array):
        return None
    turned, _, runs, back = laid
    if kind == "add" and dims and array.dtype is dtype and array.flags.c_contiguous and _are_single(array.shape, dims):
        kept = tuple([size for dim, size in enumerate(array.shape) if dim not in dims])
        return [(_of_single_elements, kept, dtype, ())], True, None
    known: list[tuple[Any, Any, np.dtype[Any], tuple[int, ...]]] = []
    shape, given = turned.shape, array.dtype
    for first, last in runs:
        passes, shape = _passes(summed, shape, first, last, given, computed)
        known += [(kernel, size, computed, numbers) for kernel, size, numbers in passes]
        summed, given = REDUCTIONS[summed].join, computed  # of what elements stand for
    kernel, _, _, numbers = known.pop()
    in_order = back == sorted(back)
    if len(runs) == 1 and in_order and math.prod(turned.shape[runs[0][1] + 1 :]) == 1:  # rows: all is stored at once
        join, given = (summed, computed) if known else (_SUMMED.get(kind, kind), array.dtype)
        kernel = reduce_rows(join, _name(given), _name(computed), _name(dtype), kind in _SUMMED)
        return [*known, (kernel, shape, dtype, numbers)], True, None
    final = computed is dtype and kind not in _SUMMED
    return [*known, (kernel, shape, computed, numbers)], final, None if in_order else back


def _are_single(shape: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    return math.prod([shape[dim] for dim in dims]) == 1


def _of_single_elements(out: Any, array: Any, *_: Any) -> Any:
    """Sums of one element each: -0.0 becomes 0.0, as where there are more."""
    return np.add(array.reshape(out.shape), 0, out)


def _finished(kind: str, sums: Any, dtype: np.dtype[Any]) -> Any:
    return (np.sqrt(sums) if kind in _SUMMED else sums).astype(dtype, copy=False)


def _type_to_compute_in(kind: str, given: np.dtype[Any], wanted: np.dtype[Any]) -> np.dtype[Any] | None:
    if kind not in _KINDS or _name(given) is None or _name(wanted) is None:
        return None
    if given.kind in "iu" and (wanted.kind not in "iu" or given.itemsize > wanted.itemsize):
        return None
    return wanted if wanted.kind in "iu" or kind in ("maximum", "minimum") else _DOUBLE


def _name(dtype: np.dtype[Any]) -> str | None:
    return name_of_type(dtype) or _INTEGERS.get(dtype)


def squared_deviations(array: Any, dims: tuple[int, ...], centres: Any) -> Any:
    """The sums of squares of the distances to `centres`, which keeps the reduced dimensions, in float64; or None."""
    laid = None if name_of_type(array.dtype) is None else _laid_out(array, dims)
    if laid is None:
        return None
    array, order, ((first, last), *others), back = laid
    beside = array.shape[:first] + (1,) * (last + 1 - first) + array.shape[last + 1 :]
    centres = np.asarray(np.broadcast_to(centres.transpose(order), beside), _DOUBLE, order="C")
    array = _reduced_run("deviation", array, first, last, _DOUBLE, DIRECT, centres)
    for start, end in others:
        array = _reduced_run("add", array, start, end, _DOUBLE, DIRECT)
    return np.asarray(array.transpose(back), order="C")


def variances(
    array: Any, dims: tuple[int, ...], free: float, keepdim: bool, root: bool, workspace: Workspace = DIRECT
) -> Any:
    """Variances along `dims`, or their roots, and means, in float32 for half precision; None: it takes several steps.

    The sum of squares is divided by `free`.
    """
    plan = _variances_plan(array.dtype, array.shape, dims, keepdim, root)
    if plan is None or not array.flags.c_contiguous:
        return None
    kernel, kept, dtype, sizes = plan
    spread, mean = workspace.empty(kept, dtype), workspace.empty(kept, dtype)
    workspace.run(kernel, spread, mean, array, *sizes, free)
    return spread, mean


@functools.lru_cache(1024)
def _variances_plan(
    dtype: np.dtype[Any], shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool, root: bool
) -> tuple[Any, tuple[int, ...], np.dtype[Any], tuple[int, ...]] | None:
    """The kernel that fits, the shape and the dtype of its results, and the sizes that it is told; None: none fits."""
    given = name_of_type(dtype)
    if given is None or 0 in shape or not dims:
        return None
    first, last = min(dims), max(dims)
    length = math.prod(shape[first : last + 1])
    inner = math.prod(shape[last + 1 :])
    if len(dims) != last - first + 1 or length * inner > 2 * ROW_CHUNK:
        return None
    kept = shape[:first] + (1,) * len(dims) * keepdim + shape[last + 1 :]
    wide = wide_type(dtype)
    kernel = _variances(given, "float64" if wide is _DOUBLE else "float32", inner == 1, root)
    return kernel, kept, wide, (math.prod(shape[:first]), length, inner)


_BOUNDS: dict[np.dtype[Any], Any] = {}
"""The kernels that find the smallest and the largest element, by dtype; None: there is none for it."""


def aminmax(array: Any, dim: int | None, keepdim: bool) -> tuple[Any, Any] | None:
    """Lowering of `aminmax`: the smallest and the largest element."""
    return bounds(array) if dim is None and not keepdim else None


def bounds(array: Any) -> tuple[Any, Any] | None:
    """The smallest and the largest of all elements, where one thread goes through them as soon as several."""
    if not array.flags.c_contiguous or not 0 < array.size <= 2 * ROW_CHUNK:
        return None
    dtype = array.dtype
    try:
        kernel = _BOUNDS[dtype]
    except KeyError:
        name = _name(dtype)
        kernel = _BOUNDS[dtype] = None if name is None else _bounds(name)
    if kernel is None:
        return None
    least, largest = np.empty((), dtype), np.empty((), dtype)
    kernel(least, largest, array, array.size)
    return least, largest


def _laid_out(array: Any, dims: tuple[int, ...] | None) -> Any:
    """The array with its dimensions in the order in which they lie in memory, that order, and what it makes of `dims`.

    These come as runs of neighbours, the last one first. Also the order of the result's dimensions. None: it cannot be
    reduced like that.
    """
    if dims is None:
        dims = tuple(range(array.ndim))
    if not dims or not array.size:
        return None
    order = list(range(array.ndim))
    if not array.flags.c_contiguous:
        if not any(not step and size > 1 for step, size in zip(array.strides, array.shape, strict=True)):
            order.sort(key=lambda dim: -abs(array.strides[dim]))
        elif array.size > _MOST_SPREAD:
            return None  # spread out, it might be too large for the memory
        array = np.ascontiguousarray(array.transpose(order))
    runs: list[tuple[int, int]] = []
    for place in sorted((order.index(dim) for dim in dims), reverse=True):
        if runs and runs[-1][0] == place + 1:
            runs[-1] = (place, runs[-1][1])
        else:
            runs.append((place, place))
    kept = [dim for dim in order if dim not in dims]
    return array, order, runs, [kept.index(dim) for dim in sorted(kept)]


def _reduced_run(
    kind: str, array: Any, first: int, last: int, dtype: np.dtype[Any], workspace: Workspace, centres: Any = None
) -> Any:
    """Neighbouring dimensions of a contiguous array reduced."""
    if centres is None:
        centres = array
    passes, shape = _passes(kind, array.shape, first, last, array.dtype, dtype)
    for kernel, size, numbers in passes:
        array = workspace.run(kernel, workspace.empty(size, dtype), array, *numbers, centres)
    return array.reshape(shape)


Pass = tuple[Any, int, tuple[int, ...]]
"""A kernel, the size of its result, and the numbers that it is called with."""


@functools.lru_cache(1024)
def _passes(
    kind: str, shape: tuple[int, ...], first: int, last: int, dtype: np.dtype[Any], computed: np.dtype[Any]
) -> tuple[list[Pass], tuple[int, ...]]:
    """How such an array is reduced, and the shape that results: all that depends on sizes and dtypes alone."""
    given, name = _name(dtype), _name(computed)
    outer, inner = math.prod(shape[:first]), math.prod(shape[last + 1 :])
    length = math.prod(shape[first : last + 1])
    passes: list[Pass] = []
    while True:
        chunk = COLUMN_CHUNK if inner > 1 else ROW_CHUNK if length > 2 * ROW_CHUNK else length
        chunks = -(-length // chunk)
        if inner == 1:
            passes.append((reduce_rows(kind, given, name, name, False), outer * chunks, (outer, length, chunk)))
        else:
            kernel = reduce_columns(kind, given, name)
            passes.append((kernel, outer * chunks * inner, (outer, length, inner, chunk)))
        if chunks == 1:
            return passes, shape[:first] + shape[last + 1 :]
        given, length = name, chunks
        kind = REDUCTIONS[kind].join  # of what elements stand for
