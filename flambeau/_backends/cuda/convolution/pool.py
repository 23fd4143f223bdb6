"""Pooling in one and two dimensions on the device. None: no kernel fits, and the reference runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.cuda.pool import (
    ADAPTED,
    INSIDE,
    SIZES,
    THREADS,
    WITH_PADDING,
    max_pool_backward_source,
    max_pool_source,
    mean_pool_backward_source,
    mean_pool_source,
)
from ...._codegen.cuda.types import TYPES
from ...._core.arrays.quick import name_of
from ...._core.geometry.layout import is_channels_last
from ...._core.geometry.moving_windows import output_sizes, strides_for
from ..arrays.array import DeviceArray, empty, of_form
from ..runtime.driver import Launch, driver

Sizes = tuple[int, ...]
_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))
_PLACE = np.dtype(np.int64)
_MOST = 1 << 31
_FIELDS = Struct(f"=qQQQ{len(SIZES.split()) + 1}i").pack


@cache
def _kernel(make: Callable[..., str], *parameters: Any) -> Any:
    return driver().compile(make(*parameters))


def _is_last(array: DeviceArray, rank: int) -> bool:
    return array.form.ndim == rank + 2 and is_channels_last(array.form)


def _empty(shape: Sizes, dtype: Any, last: bool) -> DeviceArray:
    return empty(shape, dtype, tuple([step * dtype.itemsize for step in strides_for(shape, True)]) if last else None)


def _laid_out(array: DeviceArray, last: bool) -> DeviceArray:
    if not last:
        return array if array.form.flags.c_contiguous else array.copy()
    if array.form.strides == tuple([step * array.itemsize for step in strides_for(array.shape, True)]):
        return array
    made = _empty(array.shape, array.dtype, True)
    made[...] = array
    return made


def _two(sizes: Sizes, filler: int) -> Sizes:
    return sizes if len(sizes) == 2 else (filler, *sizes)


class _Call(NamedTuple):
    """A launch that needs no preparation when its like comes again."""

    launch: Launch
    blocks: int
    elements: int
    numbers: tuple[int, ...]
    """What a kernel is told behind the addresses."""

    def start(self, *pointers: int) -> None:
        """Launches the kernel on the addresses of source, result and positions of maxima."""
        self.launch(self.blocks, THREADS, _FIELDS(self.elements, *pointers, *self.numbers))


def _call(
    launch: Launch, result: Any, whole: Any, pooled: Any, rank: int, window: tuple[Sizes, Sizes, Sizes, Sizes],
    more: int = 0, pack: int = 1,
) -> _Call:  # fmt: skip
    """A kernel that has a thread for each `pack` of elements of `result`. `whole` is what windows move over."""
    kernel, stride, padding, dilation = window
    channels = whole.shape[1] if whole.ndim == rank + 2 else 1
    sizes = [*_two(whole.shape[-rank:], 1), *_two(pooled.shape[-rank:], 1), *_two(kernel, 1), *_two(stride, 1)]
    sizes += [*_two(padding, 0), *_two(dilation, 1)]
    count = result.size
    return _Call(launch, -(-count // (THREADS * pack)), count, (channels, *sizes, more))


_calls: dict[Any, tuple[_Call, Any, Any]] = {}
"""For operands that lie well, what runs such a call, and the forms of its results."""
_MOST_CALLS = 1024


def _remember(key: Any, call: _Call, form: Any, places: Any = None) -> None:
    if len(_calls) >= _MOST_CALLS:
        _calls.clear()
    _calls[key] = call, form, places


def _fits(array: DeviceArray, counts: Sizes, rank: int) -> bool:
    return rank <= 2 and 0 not in counts and 0 < array.size < _MOST and name_of(array.dtype) in TYPES


# ----- maxima ---------------------------------------------------------------------------------------------------------


def _pack(array: DeviceArray, last: bool, pointers: Sizes) -> int:
    """How many channels a thread has: as many as 16 bytes hold, where they lie side by side."""
    width = 16 // array.itemsize
    aligned = all(each % 16 == 0 for each in pointers)
    return width if last and aligned and array.shape[1] % width == 0 else 1


def _maxima(
    array: DeviceArray, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, indices: bool
) -> tuple[DeviceArray, DeviceArray] | None:
    form, given = array.form, array
    key = form.shape, form.strides, form.dtype, counts, kernel, stride, padding, dilation, indices, array.pointer & 15
    known = _calls.get(key)
    if known is not None:
        result = of_form(known[1])
        places = of_form(known[2]) if indices else result
        known[0].start(array.pointer, result.pointer, places.pointer)
        return result, places
    rank = len(kernel)
    if not _fits(array, counts, rank):
        return None
    last = _is_last(array, rank)
    array = _laid_out(array, last)
    shape = (*array.shape[:-rank], *counts)
    result = _empty(shape, array.dtype, last)
    places = _empty(shape, _PLACE, last) if indices else result
    pointers = array.pointer, result.pointer, places.pointer
    pack = _pack(array, last, pointers)
    launch = _kernel(max_pool_source, name_of(array.dtype), last, indices, pack)
    call = _call(launch, result, array, result, rank, (kernel, stride, padding, dilation), pack=pack)
    call.start(*pointers)
    if array is given:
        _remember(key, call, result.form, places.form)
    return result, places


def max_pool_with_indices(
    self: DeviceArray, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> tuple[DeviceArray, DeviceArray] | None:
    """Lowering of `max_pool2d_with_indices`: maxima and their positions."""
    stride = stride or kernel_size
    counts = output_sizes(self.shape[-len(kernel_size) :], kernel_size, stride, padding, dilation, ceil_mode)
    return _maxima(self, counts, kernel_size, stride, padding, dilation, True)


def max_pool(
    self: DeviceArray, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> DeviceArray | None:
    """`max_pool`: the maxima alone."""
    counts = output_sizes(self.shape[-len(kernel_size) :], kernel_size, stride, padding, dilation, ceil_mode)
    found = _maxima(self, counts, kernel_size, stride, padding, dilation, False)
    return None if found is None else found[0]


def adaptive_max_pool2d(self: DeviceArray, output_size: Sizes) -> tuple[DeviceArray, DeviceArray] | None:
    """`adaptive_max_pool2d`, where all windows have one size."""
    kernel = _uniform(self.shape[-2:], output_size)
    return None if kernel is None else _maxima(self, output_size, kernel, kernel, (0, 0), (1, 1), True)


def _uniform(spatial: Sizes, counts: Sizes) -> Sizes | None:
    if 0 in counts or any(size % count for size, count in zip(spatial, counts, strict=True)):
        return None
    return tuple([size // count for size, count in zip(spatial, counts, strict=True)])


def max_pool2d_backward(
    self: DeviceArray, input: DeviceArray, indices: DeviceArray, kernel_size: Sizes, stride: Sizes, padding: Sizes,
    dilation: Sizes,
) -> DeviceArray | None:  # fmt: skip
    """Lowering of `max_pool2d_backward`: the gradient of the images."""
    one, two, three = self.form, input.form, indices.form
    key = (
        one.shape, one.strides, one.dtype, two.shape, two.strides, two.dtype, three.shape, three.strides, three.dtype,
        kernel_size, stride, padding, dilation, (self.pointer | indices.pointer) & 15,
    )  # fmt: skip
    known = _calls.get(key)
    if known is not None:
        result = of_form(known[1])
        known[0].start(self.pointer, result.pointer, indices.pointer)
        return result
    same = self.dtype == input.dtype and indices.shape == self.shape and indices.dtype == _PLACE
    if not same or not _fits(input, self.shape[-2:], 2) or name_of(self.dtype) not in _FLOATS:
        return None
    last = _is_last(input, 2)
    grad, places = _laid_out(self, last), _laid_out(indices, last)
    result = _empty(input.shape, input.dtype, last)
    pointers = grad.pointer, result.pointer, places.pointer
    pack = _pack(input, last, pointers)
    launch = _kernel(max_pool_backward_source, name_of(self.dtype), last, pack)
    call = _call(launch, result, input, grad, 2, (kernel_size, stride, padding, dilation), pack=pack)
    call.start(*pointers)
    if grad is self and places is indices:
        _remember(key, call, result.form)
    return result


def adaptive_max_pool2d_backward(self: DeviceArray, input: DeviceArray, indices: DeviceArray) -> DeviceArray | None:
    """`adaptive_max_pool2d_backward`, where all windows have one size."""
    kernel = _uniform(input.shape[-2:], self.shape[-2:])
    return None if kernel is None else max_pool2d_backward(self, input, indices, kernel, kernel, (0, 0), (1, 1))


# ----- means ----------------------------------------------------------------------------------------------------------

_ONES, _ZEROS = (1, 1), (0, 0)


def _means(
    array: DeviceArray, counts: Sizes, window: tuple[Sizes, Sizes, Sizes], counted: int, divisor: int
) -> DeviceArray | None:
    if not _fits(array, counts, 2) or name_of(array.dtype) not in _FLOATS:
        return None
    last = _is_last(array, 2)
    array = _laid_out(array, last)
    result = _empty((*array.shape[:-2], *counts), array.dtype, last)
    launch = _kernel(mean_pool_source, name_of(array.dtype), last, counted)
    _call(launch, result, array, result, 2, (*window, _ONES), divisor).start(array.pointer, result.pointer, 0)
    return result


def _means_backward(
    grad: DeviceArray, source: DeviceArray, window: tuple[Sizes, Sizes, Sizes], counted: int, divisor: int
) -> DeviceArray | None:
    same = grad.dtype == source.dtype and grad.shape[:-2] == source.shape[:-2]
    if not same or not _fits(source, grad.shape[-2:], 2) or name_of(grad.dtype) not in _FLOATS:
        return None
    last = _is_last(source, 2)
    grad = _laid_out(grad, last)
    result = _empty(source.shape, source.dtype, last)
    launch = _kernel(mean_pool_backward_source, name_of(grad.dtype), last, counted)
    _call(launch, result, source, grad, 2, (*window, _ONES), divisor).start(grad.pointer, result.pointer, 0)
    return result


def avg_pool2d(
    self: DeviceArray, kernel_size: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
) -> DeviceArray | None:  # fmt: skip
    """Lowering of `avg_pool2d`: means of windows of images."""
    stride = stride or kernel_size
    counts = output_sizes(self.shape[-2:], kernel_size, stride, padding, _ONES, ceil_mode)
    counted = WITH_PADDING if count_include_pad else INSIDE
    return _means(self, counts, (kernel_size, stride, padding), counted, divisor_override or 0)


def avg_pool2d_backward(
    self: DeviceArray, input: DeviceArray, kernel_size: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None,
) -> DeviceArray | None:  # fmt: skip
    """Lowering of `avg_pool2d_backward`: the gradient of the images."""
    counted = WITH_PADDING if count_include_pad else INSIDE
    window = kernel_size, stride or kernel_size, padding
    return _means_backward(self, input, window, counted, divisor_override or 0)


def adaptive_avg_pool2d(self: DeviceArray, output_size: Sizes) -> DeviceArray | None:
    """Lowering of `adaptive_avg_pool2d`: means of as many windows as asked for."""
    return _means(self, output_size, (_ONES, _ONES, _ZEROS), ADAPTED, 0)


def adaptive_avg_pool2d_backward(self: DeviceArray, input: DeviceArray) -> DeviceArray | None:
    """Lowering of `adaptive_avg_pool2d_backward`: the gradient of the images."""
    return _means_backward(self, input, (_ONES, _ONES, _ZEROS), ADAPTED, 0)
