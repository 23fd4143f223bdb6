"""Batch normalisation on the device, forward and backward. None: no kernel fits, and the reference runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from ..._codegen.cuda.channel_norm import (
    THREADS,
    lines_apply_source,
    lines_sums_source,
    planes_apply_source,
    planes_sums_source,
    running_source,
    slopes_source,
    statistics_source,
)
from ..._core.arrays.dataless import empty_meta
from ..._core.arrays.quick import name_of
from ..._core.geometry.layout import is_channels_last
from ..._core.geometry.moving_windows import strides_for
from .array import DeviceArray, empty
from .driver import driver
from .scratch import scratch

_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))
_ENOUGH_BLOCKS = 264
_MANY_BLOCKS = 1056
"""So many blocks keep the memory busy while they add up, and while they write."""
_PER_BLOCK = 8192
"""Elements of a plane for one block."""


@cache
def _kernel(make: Callable[..., str], *parameters: Any) -> Any:
    return driver().compile(make(*parameters))


class _Layout(NamedTuple):
    """How the channels of an array lie: `rows` lines of them, or of each sample planes of `places`."""

    lines: bool
    last: bool
    """Whether the channels are innermost by the array's strides."""
    channels: int
    rows: int
    places: int
    width: int


def _layout(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> _Layout:
    samples, channels = shape[:2]
    wide = 16 // item
    places = math.prod(shape[2:])
    last = is_channels_last(empty_meta(shape, np.dtype(f"u{item}"), strides))
    if last or places == 1:
        return _Layout(True, last, channels, samples * places, 1, wide if channels % wide == 0 else 1)
    return _Layout(False, False, channels, samples, places, wide if places % wide == 0 else 1)


def _dense(array: DeviceArray) -> DeviceArray:
    return array if array.form.flags.c_contiguous else array.copy()


def _laid_out(array: DeviceArray, strides: tuple[int, ...] | None) -> DeviceArray:
    """The elements without gaps, row by row or with given strides, from a place on where packs may begin."""
    form = array.form
    fits = form.flags.c_contiguous if strides is None else form.strides == strides
    if fits and not array.pointer & 15:
        return array
    made = empty(form.shape, form.dtype, strides)
    made[...] = array
    return made


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float64 if name_of(dtype) == "float64" else np.float32)


def _shares(layout: _Layout, blocks_wanted: int, threads: int) -> tuple[int, int, int, int]:
    """Threads across the channels of a line, blocks across, how many lines a block has, how many parts that makes."""
    groups = layout.channels // layout.width
    across = min(threads, groups)
    blocks = -(-groups // across)
    most = -(-layout.rows // max(1, threads // across))
    splits = max(1, min(-(-blocks_wanted // blocks), most))
    part = -(-layout.rows // splits)
    return across, blocks, part, -(-layout.rows // part)


class _Passes:
    """Both passes over an array of some layout and what lies between them, ready to run.

    `gradient`: the array is read beside a gradient, whose sums and factors these are.
    """

    def __init__(
        self, layout: _Layout, strides: tuple[int, ...] | None, name: str, kept: str, gradient: bool, summed: bool
    ) -> None:
        self.layout = layout
        self.strides = strides
        """Of the array and of the result; None: row by row."""
        wide = 8 if name == "float64" else 4
        channels = layout.channels
        sizes = channels, layout.rows, layout.places
        threads = driver().block_threads(THREADS)
        self.splits = 0
        self._sum_numbers: tuple[int, ...] = ()
        self._apply_numbers: tuple[int, ...] = ()
        if summed and layout.lines:
            across, blocks, part, self.splits = _shares(layout, _ENOUGH_BLOCKS, threads)
            self._sums = _kernel(lines_sums_source, name, kept, layout.width, gradient)
            self._pack_sums, self._sum_numbers = Struct("=qqqQQQQqqq").pack, (across, blocks, part)
            self._sum_blocks = blocks * self.splits
        elif summed:
            splits = max(1, min(layout.rows, -(-_ENOUGH_BLOCKS // channels)))
            part = -(-layout.rows // splits)
            self.splits = -(-layout.rows // part)
            self._sums = _kernel(planes_sums_source, name, kept, layout.width, gradient)
            self._pack_sums, self._sum_numbers = Struct("=qqqQQQQq").pack, (part,)
            self._sum_blocks = channels * self.splits
        self._sizes, self._threads = sizes, threads
        self._plan_apply(name, gradient)
        self.along = 1
        while self.along < min(self.splits, threads // 4):
            self.along *= 2
        self.across = threads // self.along
        self.channel_blocks = -(-channels // self.across)
        self.sum_bytes = self.splits * 2 * channels * wide
        self.nbytes = self.sum_bytes + 3 * channels * wide
        """Of the sums, and of the factors behind them."""

    def _plan_apply(self, name: str, gradient: bool) -> None:
        layout = self.layout
        if layout.lines:
            across, blocks, part, splits = _shares(layout, _MANY_BLOCKS, THREADS)
            self._apply = _kernel(lines_apply_source, name, layout.width, gradient)
            self._pack_apply, self._apply_numbers = Struct("=qqqQQQQqqq").pack, (across, blocks, part)
            self._apply_blocks, self._apply_threads = blocks * splits, THREADS
        else:
            parts = -(-layout.places // _PER_BLOCK)
            part = -(-layout.places // parts)
            part += -part % layout.width
            self._apply = _kernel(planes_apply_source, name, layout.width, gradient)
            self._pack_apply, self._apply_numbers = Struct("=qqqQQQQqq").pack, (parts, part)
            self._apply_blocks = layout.rows * layout.channels * parts
            self._apply_threads = min(THREADS, 32 * -(-part // (32 * layout.width)))

    def add_up(self, x: int, grad: int, mean: int, sums: int) -> None:
        """For each part of the elements two sums of each channel."""
        fields = self._pack_sums(*self._sizes, x, grad, mean, sums, *self._sum_numbers)
        self._sums(self._sum_blocks, self._threads, fields)

    def of_channels(self, launch: Any, pack: Any, count: int, eps: float, *rest: Any) -> None:
        """Start a kernel in which several threads have a channel: as many as there are parts to add up."""
        fields = pack(self.layout.channels, self.splits, self.across, float(count), eps, *rest)
        launch(self.channel_blocks, self._threads, fields)

    def apply(self, x: DeviceArray, grad: int, factors: int) -> DeviceArray:
        """Every element by the factors of its channel."""
        made = empty(x.form.shape, x.form.dtype, self.strides)
        fields = self._pack_apply(*self._sizes, x.pointer, grad, factors, made.pointer, *self._apply_numbers)
        self._apply(self._apply_blocks, self._apply_threads, fields)
        return made


@lru_cache(1024)
def _passes(
    shape: tuple[int, ...], strides: tuple[int, ...], name: str, item: int, kept: str, gradient: bool, summed: bool
) -> _Passes:
    layout = _layout(shape, strides, item)
    dense = tuple([step * item for step in strides_for(shape, True)]) if layout.last else None
    return _Passes(layout, dense, name, kept, gradient, summed)


_STATISTICS, _SLOPES = Struct("=qqqddQQqQQQQQQ").pack, Struct("=qqqddQQQQQQQ").pack


def batch_norm(
    input: DeviceArray, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, eps: float,
    kept: np.dtype[Any],
) -> tuple[DeviceArray, DeviceArray, DeviceArray, DeviceArray] | None:  # fmt: skip
    """The result, then the mean and 1 / deviation that the derivative needs (of evaluation: nothing), the variance."""
    form = input.form
    wide = _wide(form.dtype)
    if kept.itemsize == 2:
        kept = wide  # as PyTorch keeps them on a GPU
    statistics = kept if training else running_mean.dtype
    given = weight if weight is not None else bias
    parameters = wide if given is None else given.dtype
    if not _fits(form, parameters, statistics) or (not training and running_var.dtype != statistics):
        return None
    name, kind = name_of(form.dtype), name_of(statistics)
    passes = _passes(form.shape, form.strides, name, form.itemsize, kind, False, training)
    layout = passes.layout
    input = _laid_out(input, passes.strides)
    channels = layout.channels
    weight, bias = (None if each is None else _dense(each) for each in (weight, bias))
    variance = empty((channels,), wide)
    sums, memory = scratch(passes.nbytes, driver().stream())
    factors = sums + passes.sum_bytes
    if training:
        mean, rstd = empty((channels,), kept), empty((channels,), kept)
        passes.add_up(input.pointer, 0, 0, sums)
    else:
        mean, rstd = _dense(running_mean), _dense(running_var)
    launch = _kernel(statistics_source, name, name_of(parameters), kind, weight is not None, bias is not None, training)
    passes.of_channels(
        launch, _STATISTICS, form.size // channels, eps, sums, input.pointer, layout.places,
        0 if weight is None else weight.pointer, 0 if bias is None else bias.pointer, mean.pointer, rstd.pointer,
        variance.pointer, factors,
    )  # fmt: skip
    result = passes.apply(input, 0, factors)
    del memory  # now the kernels that use it are in the queue
    if training:
        return result, mean, rstd, variance
    return result, empty((0,), kept), empty((0,), kept), variance


def _fits(form: Any, parameters: Any, statistics: Any) -> bool:
    return bool(
        form.size and form.ndim >= 2 and {name_of(form.dtype), name_of(parameters), name_of(statistics)} <= _FLOATS
    )


def batch_norm_backward(
    grads: list[Any], needed: tuple[bool, ...], input: DeviceArray, weight: Any, running_mean: Any, running_var: Any,
    training: bool, eps: float, result1: Any, result2: Any,
) -> list[Any] | None:  # fmt: skip
    """The gradients of input, weight and bias, those that are needed."""
    grad = grads[0]
    mean, rstd = (result1, result2) if training else (running_mean, running_var)
    form = input.form
    parameters = mean.dtype if weight is None else weight.dtype
    if grad is None or any(each is not None for each in grads[1:]) or grad.dtype != form.dtype:
        return None
    if not _fits(form, parameters, mean.dtype) or rstd.dtype != mean.dtype:
        return None
    name, kind = name_of(form.dtype), name_of(mean.dtype)
    passes = _passes(form.shape, form.strides, name, form.itemsize, kind, True, True)
    layout = passes.layout
    channels = layout.channels
    input, grad = _laid_out(input, passes.strides), _laid_out(grad, passes.strides)
    mean, rstd = _dense(mean), _dense(rstd)
    weight = None if weight is None else _dense(weight)
    of_weight, of_bias = empty((channels,), parameters), empty((channels,), parameters)
    sums, memory = scratch(passes.nbytes, driver().stream())
    factors = sums + passes.sum_bytes
    passes.add_up(input.pointer, grad.pointer, mean.pointer, sums)
    launch = _kernel(slopes_source, name, name_of(parameters), kind, weight is not None, training)
    passes.of_channels(
        launch, _SLOPES, form.size // channels, eps, sums, 0 if weight is None else weight.pointer, mean.pointer,
        rstd.pointer, of_weight.pointer, of_bias.pointer, factors,
    )  # fmt: skip
    of_input = passes.apply(input, grad.pointer, factors) if needed[0] else None
    del memory  # now the kernels that use it are in the queue
    return [of_input, of_weight if needed[1] else None, of_bias if needed[2] else None]


_RUNNING = Struct("=qQQQQdd").pack


def move_running(
    running_mean: DeviceArray, running_var: DeviceArray, mean: DeviceArray, variance: DeviceArray, momentum: float,
    size: int,
) -> bool | None:  # fmt: skip
    """Move running statistics towards those of a batch of `size` elements; None: not done."""
    channels = variance.size
    names = name_of(running_mean.dtype), name_of(mean.dtype), name_of(variance.dtype)
    dense = all(each.form.flags.c_contiguous for each in (running_mean, running_var, mean, variance))
    if not (channels and dense and set(names) <= _FLOATS and running_var.dtype == running_mean.dtype):
        return None
    count = size // channels
    factor = count / (count - 1) if count > 1 else float("nan")
    pointers = running_mean.pointer, running_var.pointer, mean.pointer, variance.pointer
    fields = _RUNNING(channels, *pointers, float(momentum), factor)
    _kernel(running_source, *names)(-(-channels // THREADS), THREADS, fields)
    return True
