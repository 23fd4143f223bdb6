"""Reductions of device arrays: sums, products, extremes, truth, and where extremes are."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.cuda.reduce import (
    BLOCKS,
    BLOCKS_BY_COLUMNS,
    KINDS,
    THREADS,
    columns_source,
    position_source,
    reduce_source,
)
from ...._codegen.cuda.types import TYPES
from ...._core.arrays.quick import name_of
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..arrays import ufuncs
from ..arrays.array import DeviceArray, empty, form_of, of_form
from ..runtime.driver import driver
from ..runtime.plans import of_level

_ENOUGH_BLOCKS, _BLOCKS_BY_COLUMNS = BLOCKS * 132, BLOCKS_BY_COLUMNS * 132
"""As many as the processors of an H200 have at a time: more of them would come in a second round, which is not full."""
_LEAST_SHARE = 8
"""How many elements a thread should have before a result is divided among several blocks."""
_FEW = 64
"""Up to so many elements of a thread nothing is divided: a second launch would take as long as they do."""
_LANES, _PART = 32, 4096
"""Where a result must not depend on how many there are, so many threads share it, or so many elements of it: numbers
that follow from nothing, so that zeros behind the elements change nothing either."""
_PAIR = 16
"""Bytes of a value and its position."""


class _Call(NamedTuple):
    """A reduction that needs no preparation when its like comes again."""

    form: Any
    """Of the result: arrays share it."""
    run: Callable[[int, int], None] | None
    """Given where the array and where the result is; None: there is nothing to compute."""


_calls: dict[Any, _Call | None] = of_level({})
_MOST_CALLS = 4096


def reduced(
    kind: str, array: DeviceArray, axes: Any, dtype: np.dtype[Any] | None, keepdims: bool
) -> DeviceArray | None:
    """`array` reduced by the ufunc called `kind`; None for what has no code, and for what NumPy refuses."""
    form = array.form
    axes = tuple(axes) if isinstance(axes, list) else axes
    aligned = not array.pointer % 16
    key = kind, form.shape, form.strides, form.dtype, axes, dtype, keepdims, aligned
    try:
        call = _calls[key]
    except KeyError:
        if len(_calls) >= _MOST_CALLS:
            _calls.clear()
        call = _calls[key] = _prepared(kind, form, axes, dtype, keepdims, aligned)
    if call is None:
        return None
    made = of_form(call.form)
    if call.run is not None:
        call.run(array.pointer, made.pointer)
    return made


def reducing(kind: str, form: Any, axes: Any, dtype: np.dtype[Any]) -> Callable[[int, int], None]:
    """What reduces arrays of a form, given where one is, at a multiple of 16, and where the result goes."""
    call = _prepared(kind, form, axes, dtype, False, True)
    assert call is not None
    assert call.run is not None
    return call.run


def _prepared(
    kind: str, form: Any, axes: Any, dtype: np.dtype[Any] | None, keepdims: bool, aligned: bool
) -> _Call | None:
    if kind not in KINDS or name_of(form.dtype) not in TYPES:
        return None
    if kind in ("maximum", "minimum") and (not form.size or form.dtype.kind == "c"):
        return None
    result = np.dtype(bool) if kind.startswith("logical") else dtype or _result_type(kind, form.dtype)
    if name_of(result) not in TYPES or (form.dtype.kind == "c" and result.kind != "c" and result.kind != "b"):
        return None
    accumulated = "float32" if name_of(result) in ("float16", "bfloat16") else name_of(result)
    plan = _plan(form.shape, form.strides, axes, form.itemsize if aligned else 0)
    made = form_of(plan.shape(keepdims), result)
    if not made.size:
        return _Call(made, None)
    columns = _planned_columns(plan, kind, form.dtype, result, accumulated) if plan.columns else None
    if columns is not None:
        return _Call(made, columns.run)
    if plan.splits == 1:
        launch = _compiled(kind, name_of(form.dtype), accumulated, name_of(result), *plan.code)
        return _Call(made, lambda source, target: plan.run(launch, source, target))
    first = _compiled(kind, name_of(form.dtype), accumulated, accumulated, *plan.code)
    partial = form_of((plan.splits, plan.results), np.dtype(accumulated))
    second = _plan(partial.shape, partial.strides, 0, 0, True)
    last = _compiled(kind, accumulated, accumulated, name_of(result), *second.code)

    def run(source: int, target: int) -> None:
        between = of_form(partial)
        plan.run(first, source, between.pointer)
        second.run(last, between.pointer, target)

    return _Call(made, run)


class _ByColumns(NamedTuple):
    """How the rows of a matrix are reduced by threads that have several columns each."""

    launch: Any
    blocks: int
    threads: int
    sizes: tuple[int, int]
    numbers: tuple[int, ...]
    partial: tuple[Any, _Plan, Any] | None
    """Where the rows are divided: the form of what the parts give, and how that is reduced in turn."""

    def run(self, source: int, target: int) -> None:
        """Start the kernels."""
        if self.partial is None:
            self.launch(self.blocks, self.threads, _COLUMNS(*self.sizes, source, target, *self.numbers))
            return
        form, second, last = self.partial
        between = of_form(form)
        self.launch(self.blocks, self.threads, _COLUMNS(*self.sizes, source, between.pointer, *self.numbers))
        second.run(last, between.pointer, target)


def _planned_columns(
    plan: _Plan, kind: str, given: np.dtype[Any], result: np.dtype[Any], accumulated: str
) -> _ByColumns | None:
    width = 16 // given.itemsize
    step = plan.columns
    if width < 2 or plan.results % width or step % 16 or not plan.length:
        return None
    threads = driver().block_threads(THREADS)
    across = min(threads, 32)
    blocks = -(-plan.results // (across * width))
    along = threads // across
    most = 1 if plan.length <= along * _FEW else -(-plan.length // (along * _LEAST_SHARE))
    splits = max(1, min(_BLOCKS_BY_COLUMNS // blocks, most))  # a few blocks more would wait for all the others to end
    part = -(-plan.length // splits)
    splits = -(-plan.length // part)
    partial = None
    if splits > 1:
        form = form_of((splits, plan.results), np.dtype(accumulated))
        second = _plan(form.shape, form.strides, 0, 0, True)
        partial = form, second, _compiled(kind, accumulated, accumulated, name_of(result), *second.code)
    stored = name_of(result) if partial is None else accumulated
    first = _compiled_columns(kind, name_of(given), accumulated, stored, width)
    sizes = plan.results, plan.length
    return _ByColumns(first, blocks * splits, threads, sizes, (across, blocks, part, step), partial)


_COLUMNS = Struct("=qqQQqqqq").pack


@cache
def _compiled_columns(kind: str, given: str, accumulated: str, result: str, width: int) -> Any:
    return driver().compile(columns_source(kind, given, accumulated, result, width))


def _result_type(kind: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What NumPy sums up in: small integers in large ones."""
    if kind in ("add", "multiply") and dtype.kind in "iub" and dtype.itemsize < 8:
        return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
    return dtype


def sum_all(self: DeviceArray, dtype: Any) -> DeviceArray | None:
    """The op: halves are added up in float32, without a copy of them all."""
    return _sum(self, None, False, dtype.numpy)


def sum_dim(self: DeviceArray, dim: tuple[int, ...], keepdim: bool, dtype: Any) -> DeviceArray | None:
    """The op, along some dimensions."""
    return _sum(self, dim, keepdim, dtype.numpy)


def mean_all(self: DeviceArray, dtype: Any) -> DeviceArray | None:
    """Lowering of `mean_all`: the mean of all elements."""
    return _mean(self, None, False, dtype.numpy)


def mean_dim(self: DeviceArray, dim: tuple[int, ...], keepdim: bool, dtype: Any) -> DeviceArray | None:
    """The op, along some dimensions."""
    return _mean(self, dim, keepdim, dtype.numpy)


_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))


def _sum(array: DeviceArray, dim: Any, keepdim: bool, dtype: np.dtype[Any]) -> DeviceArray | None:
    if name_of(array.form.dtype) not in _FLOATS or name_of(dtype) not in _FLOATS or dim == ():
        return None
    return reduced("add", array, dim, dtype, keepdim)


def _mean(array: DeviceArray, dim: Any, keepdim: bool, dtype: np.dtype[Any]) -> DeviceArray | None:
    wide = np.dtype(np.float64 if name_of(dtype) == "float64" else np.float32)
    total = _sum(array, dim, keepdim, wide) if name_of(dtype) in _FLOATS else None
    if total is None or not array.form.size:
        return None
    divide = ufuncs.function(np.divide, None, dtype, wide, float)
    assert divide is not None
    return divide.binary(total, float(array.form.size // total.form.size))


def position(kind: str, array: DeviceArray, axis: int | None, keepdims: bool) -> DeviceArray | None:
    """Where the largest ("argmax") or smallest element is along a dimension."""
    form = array.form
    if name_of(form.dtype) not in TYPES or form.dtype.kind == "c" or not form.size:
        return None
    if axis is None and not form.flags.c_contiguous:
        array = array.copy()
        form = array.form
    plan = _plan(form.shape, form.strides, axis, 0)
    made = empty(plan.shape(keepdims), np.dtype(np.int64))
    name = name_of(form.dtype)
    if plan.splits == 1:
        plan.run(_compiled_position(kind, name, *plan.code[:3], 0), array.pointer, made.pointer)
    else:
        partial = empty((plan.splits, plan.results), np.dtype(f"V{_PAIR}"))
        plan.run(_compiled_position(kind, name, *plan.code[:3], 1), array.pointer, partial.pointer)
        second = _plan(partial.form.shape, partial.form.strides, 0, 0, True)
        second.run(_compiled_position(kind, name, *second.code[:3], 2), partial.pointer, made.pointer)
    return made


@cache
def _compiled(
    kind: str, given: str, accumulated: str, result: str, kept: int, rest: int, fast: bool, width: int
) -> Any:
    return driver().compile(reduce_source(kind, given, accumulated, result, kept, rest, fast, width))


@cache
def _compiled_position(kind: str, given: str, kept: int, rest: int, fast: bool, partial: int) -> Any:
    return driver().compile(position_source(kind, given, kept, rest, fast, partial))


class _Plan:
    """How an array is reduced: its dimensions merged, and the work divided.

    `item` is the size of its elements if it begins at a multiple of 16 bytes, else 0; `whole`: results are not divided.
    """

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], axes: Any, item: int, whole: bool) -> None:
        ndim = len(shape)
        if axes is None:
            axes = range(ndim)
        elif not isinstance(axes, tuple):
            axes = (axes,)
        self.axes = {axis + ndim if axis < 0 else axis for axis in axes}
        self.given = shape
        dims = list(zip(shape, strides, strict=True))
        kept = _merged([each for axis, each in enumerate(dims) if axis not in self.axes])
        rest = _merged([dims[axis] for axis in sorted(self.axes)])
        self.results = math.prod([size for axis, size in enumerate(shape) if axis not in self.axes])
        length = math.prod([shape[axis] for axis in self.axes])
        self.threads = threads = driver().block_threads(THREADS)
        fast = abs(rest[-1][1]) <= abs(kept[-1][1]) or self.results == 1
        self.length = length
        in_any_batch = REPRODUCIBILITY.product is not None
        if in_any_batch:
            item = 0
        self.columns = rest[0][1] if item and not fast and kept[-1][1] == item and len(kept) == len(rest) == 1 else 0
        """If it is a matrix whose rows are reduced, how far they are apart; else 0."""
        width = 1
        if item and fast and len(rest) == 1 and rest[0][1] == item and item < 16:
            width = 16 // item
            if length % width or any(step % 16 for _, step in kept):
                width = 1
            else:
                length //= width
                rest = [(length, 16)]
        along = 1
        most_along = min(threads, _LANES) if in_any_batch else threads
        while along < most_along and along < length:
            along *= 2
        if not fast and not in_any_batch:
            along = min(along, max(1, threads // 32))
        across = threads // along
        self.blocks = max(1, -(-self.results // across))
        most = 1 if length <= along * _FEW else -(-length // (along * _LEAST_SHARE))
        splits = 1 if whole else max(1, min(-(-_ENOUGH_BLOCKS // self.blocks), most, 1024))
        part = -(-max(length, 1) // splits)
        if in_any_batch and not whole:
            part = _PART
        self.splits = max(1, -(-length // part))
        self.code = len(kept), len(rest), fast, width
        """What the kernel's code depends on."""
        self._numbers = [across, self.blocks, part, *[number for pair in (*kept, *rest) for number in pair]]
        self._length = length
        self._pack = Struct(f"=qqQQ{len(self._numbers)}q").pack

    def shape(self, keepdims: bool) -> tuple[int, ...]:
        """The shape of the result."""
        sizes = enumerate(self.given)
        if keepdims:
            return tuple([1 if axis in self.axes else size for axis, size in sizes])
        return tuple([size for axis, size in sizes if axis not in self.axes])

    def run(self, launch: Any, source: int, target: int) -> None:
        """Start the kernel."""
        launch(
            self.blocks * self.splits,
            self.threads,
            self._pack(self.results, self._length, source, target, *self._numbers),
        )


@of_level
@lru_cache(4096)
def _plan(shape: tuple[int, ...], strides: tuple[int, ...], axes: Any, item: int, whole: bool = False) -> _Plan:
    return _Plan(shape, strides, axes, item, whole)


def _merged(dims: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Dimensions in order, those that follow each other evenly in memory as one."""
    found: list[tuple[int, int]] = []
    for size, stride in dims:
        if size == 1:
            continue
        if found and found[-1][1] == size * stride:
            found[-1] = found[-1][0] * size, stride
        else:
            found.append((size, stride))
    return found or [(1, 0)]
