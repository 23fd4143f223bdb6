"""Maximum pooling, with where each maximum was found."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...._core.backend import beside, read
from ...._core.dtype import FLOAT, INTEGER
from ...._core.geometry.moving_windows import channel_last, output_sizes
from ...._core.modes import THREAD
from ...._core.tensor import Tensor
from ...._dispatch.arguments.autocast_rules import FullIf, on
from ...._dispatch.arguments.precision import in_single
from ...._dispatch.axes import Images
from ...._dispatch.dispatch import Array, Primitive, primitive
from ...._dispatch.public.registry import public
from ...create.like import zeros_like
from ...reduce.reductions import no_kernel
from .pool_window import (
    Sizes,
    along,
    borders,
    check_input,
    check_line,
    check_window,
    empty,
    empty_windows,
    laid_out,
    padded,
    row_major,
    sizes,
    window_slices,
)

_FEW = 256
"""Of fewer elements all windows are laid out side by side."""


def lowest(array_type: Any) -> Any:
    """What no element is below."""
    return -np.inf if array_type.kind == "f" else np.iinfo(array_type).min


def has_nan(array: Any) -> bool:
    """Whether comparisons need to think of NaN."""
    return array.dtype.kind == "f" and bool(read(np.isnan(array).any()))


@functools.lru_cache(maxsize=32)
def _first_places(steps: Sizes, counts: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> tuple[Any, Any]:
    """The place of each window's first element, which may be outside, and of its first element inside."""
    rank = len(counts)
    corner, first = np.zeros(counts, np.int64), np.zeros(counts, np.int64)
    for dim in range(rank):
        start = np.arange(counts[dim]) * stride[dim] - padding[dim]
        corner += along(start, dim, rank) * steps[dim]
        inside = start + -(np.minimum(start, 0) // dilation[dim]) * dilation[dim]
        first += along(inside, dim, rank) * steps[dim]
    return corner, first


def maxima(
    array: Any, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool, last: bool
) -> tuple[Any, Any]:
    """The largest element of each window and its place in the flattened plane; the first of equals, the last NaN."""
    counts = output_sizes(array.shape[-len(kernel) :], kernel, stride, padding, dilation, ceil_mode)
    found: tuple[Any, Any] = _maxima(array, counts, kernel, stride, padding, dilation, last)
    return found


@functools.lru_cache(maxsize=32)
def _places(spatial: Sizes, counts: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes) -> tuple[Any, Any]:
    """For each window the places of its elements in the flattened plane; and where each window begins among these."""
    rank = len(counts)
    places = np.zeros((*counts, *kernel), np.int64)
    for dim, step in enumerate(row_major(spatial)):
        starts = np.arange(counts[dim]) * stride[dim]
        within = np.arange(kernel[dim]) * dilation[dim]
        places += step * (along(starts, dim, 2 * rank) + along(within, rank + dim, 2 * rank))
    windows = places.reshape(math.prod(counts), math.prod(kernel))
    return windows, np.arange(len(windows)) * windows.shape[1]


def _maxima_of_few(array: Any, counts: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes) -> tuple[Any, Any]:
    """The maxima of windows that lie inside, of elements without NaN: all windows laid out, in few calls."""
    rank = len(kernel)
    spatial, shape = array.shape[-rank:], (*array.shape[:-rank], *counts)
    windows, begins = _places(spatial, counts, kernel, stride, dilation)
    planes = array.reshape(-1, math.prod(spatial))
    at = planes.take(windows, 1).argmax(2)
    at += begins
    found = windows.reshape(-1).take(at)
    return planes[np.arange(len(planes))[:, None], found].reshape(shape), found.reshape(shape)


@in_single
def _maxima(
    array: Any, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, last: bool
) -> tuple[Any, Any]:
    rank = len(kernel)
    spatial = array.shape[-rank:]
    nan = has_nan(array)
    before, after = borders(spatial, counts, kernel, stride, padding, dilation)
    if 0 < array.size < _FEW and type(array) is np.ndarray and not (last or nan or any(before) or any(after)):
        return _maxima_of_few(array, counts, kernel, stride, dilation)
    best = empty((*array.shape[:-rank], *counts), array.dtype, last, array)
    best.fill(lowest(array.dtype))
    indices = empty(best.shape, np.int64, last, array)
    steps = row_major(spatial)
    corner, first = (beside(each, array) for each in _first_places(steps, counts, stride, padding, dilation))
    indices[...] = first
    wide = padded(array, before, after, lowest(array.dtype))
    for position, key in window_slices(counts, kernel, stride, dilation):
        values = wide[key]
        better = values > best
        if nan:
            better |= np.isnan(values)
        np.copyto(best, values, where=better)
        shift = sum(at * spread * step for at, spread, step in zip(position, dilation, steps, strict=True))
        np.copyto(indices, corner + shift, where=better)
    return best, indices


def picked(grad: Tensor, indices: Any, rank: int) -> Tensor:
    """The elements of `grad` at `indices` of its planes, which have `rank` dimensions."""
    lead = tuple(indices.shape[:-rank])
    flat = indices.reshape(*lead, math.prod(indices.shape[-rank:]))
    return grad.reshape(*lead, math.prod(grad.shape[-rank:])).gather(-1, flat).view(indices.shape)


def check_places(indices: Any, spatial: Sizes, error: type[Exception]) -> None:
    """Refuse positions outside of a plane."""
    wrong = (indices < 0) | (indices >= math.prod(spatial))
    if read(wrong.any()):
        raise error(
            f"Found an invalid max index: {indices[wrong].reshape(-1)[0]} (output volumes are of size "
            f"{'x'.join(map(str, spatial))})"
        )


@in_single
def scattered(values: Array, indices: Array, source: Array, rank: int, last: bool) -> Array:
    """For each element of `source` the sum of the values whose index it is."""
    area = math.prod(source.shape[-rank:])
    planes = math.prod(source.shape[:-rank])
    result = np.zeros(planes * area, values.dtype, like=values)
    if values.size:
        check_places(indices, source.shape[-rank:], IndexError)
        places = indices.reshape(planes, -1) + np.arange(planes, like=values).reshape(-1, 1) * area
        np.add.at(result, places.reshape(-1), values.reshape(-1))
    return laid_out(result.reshape(source.shape), last)


@primitive(
    "MaxPool2DWithIndicesBackwardBackward0",
    axes=Images(),
    self=lambda grad, indices: picked(grad, indices, 2),
    input=lambda grad: zeros_like(grad),
)
def _max_pool2d_backward(
    self: Array, input: Array, indices: Array, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> Array:
    """Indices are enough; with the windows a thread can have an element, and look at those over it."""
    return scattered(self, indices, input, 2, channel_last(input, 2))


def scattering(node: str, name: str, rank: int, keeps_order: Callable[[Any, int], bool]) -> Primitive[..., Tensor]:
    """The op that puts gradients where maxima were found, for nodes `{node}BackwardBackward0`."""

    def backward(self: Array, input: Array, indices: Array) -> Array:
        return scattered(self, indices, input, rank, keeps_order(input, rank))

    return primitive(
        f"{node}BackwardBackward0", op_name=f"{name}_backward", axes=Images(),
        self=lambda grad, indices: picked(grad, indices, rank), input=lambda grad: zeros_like(grad),
    )(backward)  # fmt: skip


_max_pool3d_backward = scattering("MaxPool3DWithIndices", "max_pool3d", 3, channel_last)


def _gradient2d(
    grad: Tensor, self: Tensor, result1: Any, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    ceil_mode: bool,
) -> Tensor:  # fmt: skip
    return _max_pool2d_backward(grad, self, result1, kernel_size, stride or kernel_size, padding, dilation)


def _gradient3d(
    grad: Tensor, self: Tensor, result1: Any, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    ceil_mode: bool,
) -> Tensor:  # fmt: skip
    """The gradient of the input. The window stands among the parameters because PyTorch's node shows it."""
    return _max_pool3d_backward(grad, self, result1)


def _windows(self: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool) -> Any:
    """The shape rule of maxima: values."""
    counts = output_sizes(self.shape[-len(kernel) :], kernel, stride or kernel, padding, dilation, ceil_mode)
    return empty_windows(self, counts, channel_last(self, len(kernel)))


def _windows_with_indices(self: Array, *window: Any) -> Any:
    """The shape rule of maxima: values and where they were."""
    values = _windows(self, *window)
    return values, values.astype(np.int64)


@primitive("MaxPool2DWithIndicesBackward0", axes=Images(), self=_gradient2d, fuses=False, shape=_windows_with_indices)
def _max_pool2d_with_indices(
    self: Array, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> Any:
    return maxima(self, kernel_size, stride or kernel_size, padding, dilation, ceil_mode, channel_last(self, 2))


@primitive("MaxPool3DWithIndicesBackward0", axes=Images(), self=_gradient3d, shape=_windows_with_indices)
def _max_pool3d_with_indices(
    self: Array, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> Any:
    return maxima(self, kernel_size, stride or kernel_size, padding, dilation, ceil_mode, channel_last(self, 3))


_WITH_INDICES = {2: _max_pool2d_with_indices, 3: _max_pool3d_with_indices}


@primitive(None, axes=Images(), shape=_windows)
def _max_pool(
    self: Array, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> Array:
    """The maxima alone."""
    counts = output_sizes(self.shape[-len(kernel_size) :], kernel_size, stride, padding, dilation, ceil_mode)
    return _maxima_by_dimensions(self, counts, kernel_size, stride, padding, dilation)


@in_single
def _maxima_by_dimensions(
    self: Array, counts: Sizes, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> Array:
    """The maxima alone, one dimension after the other."""
    rank = len(kernel_size)
    spatial = self.shape[-rank:]
    before, after = borders(spatial, counts, kernel_size, stride, padding, dilation)
    found = padded(self, before, after, lowest(self.dtype))
    for axis in range(-rank, 0):
        trail = (slice(None),) * (-1 - axis)
        extent = (counts[axis] - 1) * stride[axis] + 1
        starts = range(0, kernel_size[axis] * dilation[axis], dilation[axis])
        found = functools.reduce(
            np.maximum, [found[(..., slice(at, at + extent, stride[axis]), *trail)] for at in starts]
        )
    last = channel_last(self, rank)
    if found.base is None and found.flags.c_contiguous is not last:
        return found
    result = empty(found.shape, found.dtype, last, found)
    result[...] = found
    return result


def _wants_indices(input: Tensor) -> bool:
    """Whether somebody may ask later where the maxima were: a backward pass, forward mode, an interpreter."""
    modes = THREAD.modes
    return not modes.is_ordinary or (modes.grad and input.requires_grad)


def _window(
    name: str, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Any, ...]:
    return (
        sizes(name, "kernel_size", kernel_size, rank, 2),
        sizes(name, "stride", stride, rank, 3),
        sizes(name, "padding", padding, rank, 4),
        sizes(name, "dilation", dilation, rank, 5),
        bool(ceil_mode),
    )


def _pooled(
    rank: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: bool
) -> Tensor:
    name = f"max_pool{rank}d"
    window = _window(name, rank, kernel_size, stride, padding, dilation, ceil_mode)
    check_window(name, input._array.shape, window[0], window[1] or window[0], *window[2:])
    if input._kind.dtype.category not in (INTEGER, FLOAT):
        raise no_kernel(name, input)
    if indices:
        return _WITH_INDICES[rank](input, *window)
    if _wants_indices(input):
        return _WITH_INDICES[rank](input, *window)[0]
    return _max_pool(input, window[0], window[1] or window[0], *window[2:])


@public(method=False)
def max_pool1d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """The largest elements of windows along the last dimension, and their places."""
    check_line("max_pool1d", input)
    kernel, steps, pads, spreads, ceil_mode = _window(
        "max_pool1d", 1, kernel_size, stride, padding, dilation, ceil_mode
    )
    flat: Any = input.unsqueeze(-2)
    window = (1, *kernel), (1, *(steps or kernel)), (0, *pads), (1, *spreads), ceil_mode
    values, indices = _pooled(2, flat, *window, True)
    return values.squeeze(-2), indices.squeeze(-2)


def _check_line_window(
    input: Tensor, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> None:
    check_input("max_pool1d", input._array.shape, 1)
    for argument, (number,) in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if number <= 0:
            raise RuntimeError(f"max_pool1d() {argument} must be greater than zero, but got {number}")
    if padding[0] < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding[0]}")
    if padding[0] > kernel[0] // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={padding[0]} and "
            f"kernel_size={kernel[0]}"
        )
    (count,) = output_sizes(input._array.shape[-1:], kernel, stride, padding, dilation, ceil_mode)
    if count <= 0:
        raise RuntimeError(
            f"max_pool1d() Invalid computed output size: {count}: the input has shape {list(input._array.shape)}"
        )


@public(method=False)
def max_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """The largest elements of windows along the last dimension."""
    window = _window("max_pool1d", 1, kernel_size, stride, padding, dilation, ceil_mode)
    window = window[0], window[1] or window[0], *window[2:]
    _check_line_window(input, *window)
    if _wants_indices(input):
        return max_pool1d_with_indices(input, *window)[0]
    if input._kind.dtype.category != FLOAT:
        raise no_kernel("max_pool1d_impl", input)
    return _max_pool(input, *window)


@public(method=False)
def max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """The largest elements of windows in the last two dimensions."""
    return _pooled(2, input, kernel_size, stride, padding, dilation, ceil_mode, False)


@public(method=False, autocast=on(cpu=FullIf("return_indices", (True,), False)))
def max_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """The largest elements of windows in the last three dimensions."""
    return _pooled(3, input, kernel_size, stride, padding, dilation, ceil_mode, False)


# ----- nn.functional: the same with `return_indices` ----------------------------------------------------------------


@public("nn.functional.max_pool1d", name="max_pool1d", function=False, method=False)
def _max_pool1d_functional(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest elements of windows along the last dimension; with `return_indices`, their places too."""
    op = max_pool1d_with_indices if return_indices else max_pool1d
    return op(input, kernel_size, stride, padding, dilation, ceil_mode)


@public("nn.functional.max_pool2d", name="max_pool2d", function=False, method=False)
def _max_pool2d_functional(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    """The largest elements of windows in the last two dimensions; with `return_indices`, their places too."""
    return _pooled(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@public(
    "nn.functional.max_pool3d",
    name="max_pool3d",
    function=False,
    method=False,
    autocast=on(cpu=FullIf("return_indices", (True,), False)),
)
def _max_pool3d_functional(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    """The largest elements of windows in the last three dimensions; with `return_indices`, their places too."""
    return _pooled(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@public("nn.functional.max_pool1d_with_indices", name="max_pool1d_with_indices", function=False, method=False)
def _max_pool1d_with_indices_functional(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest elements of windows along the last dimension, and their places."""
    return max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


@public("nn.functional.max_pool2d_with_indices", function=False, method=False)
def max_pool2d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    """The largest elements of windows in the last two dimensions, and their places."""
    return _pooled(2, input, kernel_size, stride, padding, dilation, ceil_mode, True)


@public("nn.functional.max_pool3d_with_indices", function=False, method=False)
def max_pool3d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    """The largest elements of windows in the last three dimensions, and their places."""
    return _pooled(3, input, kernel_size, stride, padding, dilation, ceil_mode, True)


@public("ops.aten.max_pool2d_with_indices_backward", function=False, method=False)
def max_pool2d_with_indices_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """The gradient of `max_pool2d` from that of its result."""
    window = _window("max_pool2d_with_indices_backward", 2, kernel_size, stride, padding, dilation, ceil_mode)
    return _max_pool2d_backward(grad_output, self, indices, window[0], window[1] or window[0], *window[2:4])
