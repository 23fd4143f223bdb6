"""Batch normalisation on the device, forward and backward. None: no kernel fits, and the reference runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
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
from ..._core.geometry.layout import is_channels_last
from ..._core.geometry.moving_windows import strides_for
from .array import DeviceArray, empty
from .driver import driver
from .names import name_of

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


def _layout(array: DeviceArray) -> _Layout:
    form = array.form
    channels = form.shape[1]
    wide = 16 // form.itemsize
    last = is_channels_last(form)
    if last or form.size == form.shape[0] * channels:
        return _Layout(True, last, channels, form.size // channels, 1, wide if channels % wide == 0 else 1)
    places = form.size // (form.shape[0] * channels)
    return _Layout(False, False, channels, form.shape[0], places, wide if places % wide == 0 else 1)


def _dense(array: DeviceArray) -> DeviceArray:
    return array if array.form.flags.c_contiguous else array.copy()


def _empty(shape: tuple[int, ...], dtype: Any, last: bool) -> DeviceArray:
    return empty(shape, dtype, tuple([step * dtype.itemsize for step in strides_for(shape, True)]) if last else None)


def _laid_out(array: DeviceArray, last: bool) -> DeviceArray:
    """The elements without gaps, the channels innermost if they are to be so."""
    if not last:
        return _dense(array)
    wanted = tuple([step * array.itemsize for step in strides_for(array.shape, True)])
    if array.form.strides == wanted:
        return array
    made = empty(array.shape, array.dtype, wanted)
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


_LINES = Struct("=qqqQQQQqqq").pack
_SUMS = Struct("=qqqQQQQq").pack
_PLANES = Struct("=qqqQQQQqq").pack


def _sums(
    layout: _Layout, x: DeviceArray, grad: DeviceArray | None, mean: DeviceArray | None, kept: str
) -> DeviceArray:
    """For each part of the elements two sums of each channel."""
    name, wide = name_of(x.dtype), _wide(x.dtype)
    threads = driver().block_threads(THREADS)
    pointers = x.pointer, 0 if grad is None else grad.pointer, 0 if mean is None else mean.pointer
    sizes = layout.channels, layout.rows, layout.places
    if layout.lines:
        across, blocks, part, splits = _shares(layout, _ENOUGH_BLOCKS, threads)
        made = empty((splits, 2, layout.channels), wide)
        fields = _LINES(*sizes, *pointers, made.pointer, across, blocks, part)
        _kernel(lines_sums_source, name, kept, layout.width, grad is not None)(blocks * splits, threads, fields)
        return made
    splits = max(1, min(layout.rows, -(-_ENOUGH_BLOCKS // layout.channels)))
    part = -(-layout.rows // splits)
    splits = -(-layout.rows // part)
    made = empty((splits, 2, layout.channels), wide)
    fields = _SUMS(*sizes, *pointers, made.pointer, part)
    _kernel(planes_sums_source, name, kept, layout.width, grad is not None)(layout.channels * splits, threads, fields)
    return made


def _apply(layout: _Layout, x: DeviceArray, grad: DeviceArray | None, factors: DeviceArray) -> DeviceArray:
    """Every element by the factors of its channel."""
    made = _empty(x.shape, x.dtype, layout.last)
    name = name_of(x.dtype)
    pointers = x.pointer, 0 if grad is None else grad.pointer, factors.pointer, made.pointer
    sizes = layout.channels, layout.rows, layout.places
    if layout.lines:
        across, blocks, part, splits = _shares(layout, _MANY_BLOCKS, THREADS)
        fields = _LINES(*sizes, *pointers, across, blocks, part)
        _kernel(lines_apply_source, name, layout.width, grad is not None)(blocks * splits, THREADS, fields)
        return made
    parts = -(-layout.places // _PER_BLOCK)
    part = -(-layout.places // parts)
    part += -part % layout.width
    threads = min(THREADS, 32 * -(-part // (32 * layout.width)))
    fields = _PLANES(*sizes, *pointers, parts, part)
    launch = _kernel(planes_apply_source, name, layout.width, grad is not None)
    launch(layout.rows * layout.channels * parts, threads, fields)
    return made


def _of_channels(launch: Any, channels: int, pack: Any, splits: int, count: int, eps: float, *rest: Any) -> None:
    """Start a kernel in which several threads have a channel: as many as there are parts to add up."""
    threads = driver().block_threads(THREADS)
    along = 1
    while along < min(splits, threads // 4):
        along *= 2
    across = threads // along
    launch(-(-channels // across), threads, pack(channels, splits, across, float(count), eps, *rest))


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
    layout = _layout(input)
    input = _laid_out(input, layout.last)
    channels, count = layout.channels, form.size // layout.channels
    weight, bias = (None if each is None else _dense(each) for each in (weight, bias))
    variance, factors = empty((channels,), wide), empty((2, channels), wide)
    sums: DeviceArray | None = None
    if training:
        mean, rstd = empty((channels,), kept), empty((channels,), kept)
        sums = _sums(layout, input, None, None, name_of(statistics))
    else:
        mean, rstd = _dense(running_mean), _dense(running_var)
    launch = _kernel(
        statistics_source, name_of(form.dtype), name_of(parameters), name_of(statistics), weight is not None,
        bias is not None, training,
    )  # fmt: skip
    _of_channels(
        launch, channels, _STATISTICS, 0 if sums is None else sums.shape[0], count, eps,
        0 if sums is None else sums.pointer, input.pointer, layout.places, 0 if weight is None else weight.pointer,
        0 if bias is None else bias.pointer, mean.pointer, rstd.pointer, variance.pointer, factors.pointer,
    )  # fmt: skip
    result = _apply(layout, input, None, factors)
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
    layout = _layout(input)
    channels, count = layout.channels, form.size // layout.channels
    input, grad = _laid_out(input, layout.last), _laid_out(grad, layout.last)
    mean, rstd = _dense(mean), _dense(rstd)
    weight = None if weight is None else _dense(weight)
    of_weight, of_bias = empty((channels,), parameters), empty((channels,), parameters)
    factors = empty((3, channels), _wide(form.dtype))
    sums = _sums(layout, input, grad, mean, name_of(mean.dtype))
    launch = _kernel(
        slopes_source, name_of(form.dtype), name_of(parameters), name_of(mean.dtype), weight is not None, training
    )
    _of_channels(
        launch, channels, _SLOPES, sums.shape[0], count, eps, sums.pointer, 0 if weight is None else weight.pointer,
        mean.pointer, rstd.pointer, of_weight.pointer, of_bias.pointer, factors.pointer,
    )  # fmt: skip
    of_input = _apply(layout, input, grad, factors) if needed[0] else None
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
