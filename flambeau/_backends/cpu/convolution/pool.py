"""Pooling in two dimensions by generated kernels, and in one dimension as a plane with one row.

Functions take arrays and give arrays, or None where no kernel fits: other dtypes, arrays without elements, more than
two dimensions of windows. Results are row-major, or with the channel innermost where the input is.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.images.max_pool import (
    max_pool_backward_channels,
    max_pool_backward_planes,
    max_pool_channels,
    max_pool_planes,
)
from ...._codegen.images.mean_pool import (
    mean_pool_backward_channels,
    mean_pool_backward_planes,
    mean_pool_channels,
    mean_pool_planes,
)
from ...._core.arrays.room import ensure_room
from ...._core.geometry.moving_windows import channel_last, output_sizes
from ..memory.workspace import DIRECT, Workspace
from ..runtime.dtypes import float_name, name_of_type

Array = Any
Sizes = tuple[int, ...]

_INTEGERS = np.dtype(np.int64)
_MOST_PLACES = 2**31 - 1
"""Places in larger planes do not fit into the lanes that hold them."""
_KNOWN_WINDOWS = frozenset(((2, 2), (3, 2), (3, 1), (2, 1)))
"""Widths and steps of windows that have kernels of their own."""
_TILES = frozenset((2, 4))
"""Widths of windows next to each other that have kernels of their own."""


def _new(shape: Sizes, dtype: np.dtype[Any], last: bool, workspace: Workspace = DIRECT) -> Array:
    if not last:
        return workspace.empty(shape, dtype)
    images, channels, height, width = shape
    return workspace.empty((images, height, width, channels), dtype).transpose(0, 3, 1, 2)


def _laid_out(array: Array, last: bool) -> Array:
    """The elements of `array` without gaps, in the order of dimensions that the kernel reads."""
    if (array.transpose(0, 2, 3, 1) if last else array).flags.c_contiguous:
        return array
    result = _new(array.shape, array.dtype, last)
    result[...] = array
    return result


@functools.lru_cache(maxsize=256)
def _geometry(
    planes: int, spatial: Sizes, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> tuple[Array, int, int]:
    """The sizes as kernels want them, and width and step of the windows where there is a kernel for them."""
    width, columns = spatial[1], counts[1]
    known = dilation == (1, 1) and (kernel[1], stride[1]) in _KNOWN_WINDOWS
    length, step = (kernel[1], stride[1]) if known else (0, 0)
    # Every second element of a vector is read with its neighbour, which has to be there.
    reach = (kernel[1] - 1) * dilation[1] + 1 + (step == 2 and kernel[1] % 2)
    begin = min(-(-padding[1] // stride[1]), columns)
    end = max(min((width + padding[1] - reach) // stride[1] + 1, columns), begin)
    sizes = (planes, *spatial, *counts, *kernel, *stride, *padding, *dilation, begin, end)
    return np.array(sizes, np.int64), length, step


def _two(sizes: Sizes, filler: int) -> Sizes:
    return sizes if len(sizes) == 2 else (filler, *sizes)


@functools.lru_cache(maxsize=256)
def _maxima_plan(
    dtype: np.dtype[Any], shape: Sizes, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    last: bool, indices: bool,
) -> tuple[Any, Sizes, tuple[Any, ...]] | None:  # fmt: skip
    """The kernel, the shape of its results and its last arguments. Networks repeat their shapes."""
    name, rank = name_of_type(dtype), len(kernel)
    if name is None or rank > 2 or 0 in shape or 0 in counts:
        return None
    spatial = _two(shape[-rank:], 1)
    if math.prod(spatial) > _MOST_PLACES:
        return None
    planes = shape[0] if last else math.prod(shape[:-rank])
    window = _two(counts, 1), _two(kernel, 1), _two(stride, 1), _two(padding, 0), _two(dilation, 1)
    geometry, length, step = _geometry(planes, spatial, *window)
    results = (*shape[:-rank], *counts)
    if last:
        return max_pool_channels(name, indices), results, (geometry, shape[1])
    return max_pool_planes(name, length, step, indices), results, (geometry,)


def maxima(
    array: Array, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, last: bool,
    indices: bool = True, workspace: Workspace = DIRECT,
) -> tuple[Array, Array | None] | None:  # fmt: skip
    """The largest element of each window, and its place in the flattened plane if it is wanted."""
    dtype = array.dtype
    plan = _maxima_plan(dtype, array.shape, counts, kernel, stride, padding, dilation, last, indices)
    if plan is None:
        return None
    run, shape, arguments = plan
    out = _new(shape, dtype, last, workspace)
    places = _new(shape, _INTEGERS, last, workspace) if indices else out
    workspace.run(run, out, places, _laid_out(array, last), *arguments)
    return out, places if indices else None


def maxima_backward(
    grad: Array, indices: Array, source: Array, last: bool, workspace: Workspace = DIRECT
) -> Array | None:
    """For each element of `source` the sum of the gradients whose index it is, over two dimensions."""
    name = float_name(grad)
    if name is None or source.dtype is not grad.dtype or indices.dtype is not _INTEGERS or not grad.size:
        return None
    if indices.shape != grad.shape or grad.shape[:-2] != source.shape[:-2]:
        return None
    grad, places = _laid_out(grad, last), _laid_out(indices, last)
    result = _new(source.shape, source.dtype, last, workspace)
    wrong = workspace.zeros(1, _INTEGERS)
    (height, width), (rows, columns) = source.shape[-2:], grad.shape[-2:]
    if last:
        images, channels = source.shape[:2]
        run, sizes = max_pool_backward_channels(name), (images, height * width, rows * columns)
        workspace.run(run, result, grad, places, wrong, *sizes, channels)
    else:
        run, sizes = max_pool_backward_planes(name), (math.prod(source.shape[:-2]), height * width, rows * columns)
        workspace.run(run, result, grad, places, wrong, *sizes)
    return None if workspace.refuses(wrong) else result


# ----- means ---------------------------------------------------------------------------------------------------------


class Windows(NamedTuple):
    """The windows along one dimension: their table, and where they are alike."""

    table: Array
    length: int
    step: int
    begin: int
    end: int
    tiles: int


@functools.lru_cache(maxsize=256)
def regular_windows(
    size: int, count: int, length: int, step: int, pad: int, include_pad: bool, divisor: int | None
) -> Windows:
    """Windows of `length` elements that begin every `step`. With a divisor, their sums are divided by that."""
    start = np.arange(count) * step - pad
    end = np.minimum(start + length, size + pad)
    first, last = np.maximum(start, 0), np.minimum(end, size)
    counted = np.full(count, divisor) if divisor is not None else end - start if include_pad else last - first
    table = np.array((first, last, counted), np.int64)
    known = (length, step) in _KNOWN_WINDOWS
    whole = (last - first == length) & (counted == (length if divisor is None else divisor))
    has_next = last + (step == 2 and length % 2) <= size
    alike = np.flatnonzero(whole & has_next & known)
    begin, after = (int(alike[0]), int(alike[-1]) + 1) if alike.size else (0, 0)
    tiles = length if length == step and length in _TILES and whole.all() else 0
    return Windows(table, length if known else 0, step if known else 0, begin, after, tiles)


@functools.lru_cache(maxsize=256)
def adaptive_windows(size: int, count: int) -> Windows:
    """`count` windows that cover a dimension; neighbours overlap where `size` is no multiple."""
    if size % count == 0:
        return regular_windows(size, count, size // count, size // count, 0, True, None)
    numbers = np.arange(count)
    first, last = numbers * size // count, -(-(numbers + 1) * size // count)
    return Windows(np.array((first, last, last - first), np.int64), 0, 0, 0, 0, 0)


class _MeansPlan(NamedTuple):
    """The means of all windows of an array, ready to run, and the way back."""

    shape: Sizes
    run: Any
    run_backward: Any
    arguments: tuple[Any, ...]
    """Of `run` beside arrays."""
    arguments_backward: tuple[Any, ...]


def _means_plan(dtype: np.dtype[Any], shape: Sizes, lines: Windows, columns: Windows, last: bool) -> _MeansPlan | None:
    name = name_of_type(dtype)
    counts = lines.table.shape[1], columns.table.shape[1]
    if name is None or 0 in shape or 0 in counts:
        return None
    results, spatial = (*shape[:-2], *counts), shape[-2:]
    alike: tuple[int, ...] = ()  # from where to where windows are
    if last:
        sizes = (shape[0], *spatial, *counts, shape[1])
        forward, back = mean_pool_channels(name), mean_pool_backward_channels(name)
    else:
        sizes = (math.prod(shape[:-2]), *spatial, *counts)
        forward = mean_pool_planes(name, columns.length, columns.step)
        back = mean_pool_backward_planes(name, columns.tiles)
        alike = columns.begin, columns.end
    arguments = lines.table, columns.table, *sizes
    return _MeansPlan(results, forward, back, (*arguments, *alike), arguments)


def means(array: Array, plan: _MeansPlan | None, last: bool, workspace: Workspace) -> Array | None:
    """The mean of each window of the last two dimensions."""
    if plan is None:
        return None
    if last or not array.flags.c_contiguous:
        out, array = _new(plan.shape, array.dtype, last, workspace), _laid_out(array, last)
    else:
        out = workspace.empty(plan.shape, array.dtype)
    return workspace.run(plan.run, out, array, *plan.arguments)


def means_backward(
    grad: Array, source: Array, plan: _MeansPlan | None, last: bool, workspace: Workspace
) -> Array | None:
    """The transpose of `_means`: the gradient of `source`."""
    if plan is None or grad.shape != plan.shape:
        return None
    result = _new(source.shape, grad.dtype, last, workspace)
    return workspace.run(plan.run_backward, result, _laid_out(grad, last), *plan.arguments_backward)


# ----- the ops -------------------------------------------------------------------------------------------------------


def max_pool_with_indices(
    self: Array, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool,
    workspace: Workspace = DIRECT,
) -> tuple[Array, Array | None] | None:  # fmt: skip
    """Lowering of `max_pool2d_with_indices`: maxima and their positions."""
    stride = stride or kernel_size
    counts = output_sizes(self.shape[-len(kernel_size) :], kernel_size, stride, padding, dilation, ceil_mode)
    last = channel_last(self, len(kernel_size))
    return maxima(self, counts, kernel_size, stride, padding, dilation, last, workspace=workspace)


def max_pool(
    self: Array, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool,
    workspace: Workspace = DIRECT,
) -> Array | None:  # fmt: skip
    """`max_pool`: the maxima alone."""
    counts = output_sizes(self.shape[-len(kernel_size) :], kernel_size, stride, padding, dilation, ceil_mode)
    last = channel_last(self, len(kernel_size))
    done = maxima(self, counts, kernel_size, stride, padding, dilation, last, indices=False, workspace=workspace)
    return None if done is None else done[0]


def max_pool2d_backward(
    self: Array, input: Array, indices: Array, *window: Sizes, workspace: Workspace = DIRECT
) -> Array | None:
    """`max_pool2d_backward`: the indices say it all."""
    return maxima_backward(self, indices, input, channel_last(input, 2), workspace)


def adaptive_max_pool2d(self: Array, output_size: Sizes) -> tuple[Array, Array | None] | None:
    """`adaptive_max_pool2d`, where all windows have one size."""
    spatial = self.shape[-2:]
    if 0 in output_size or any(size % count for size, count in zip(spatial, output_size, strict=True)):
        return None
    kernel = tuple([size // count for size, count in zip(spatial, output_size, strict=True)])
    return maxima(self, output_size, kernel, kernel, (0, 0), (1, 1), channel_last(self, 2))


def adaptive_max_pool2d_backward(self: Array, input: Array, indices: Array) -> Array | None:
    """`adaptive_max_pool2d_backward`: windows overlap, so half precision is summed up in float32."""
    if self.itemsize != 2:
        return max_pool2d_backward(self, input, indices)
    done = max_pool2d_backward(self.astype(np.float32), input.astype(np.float32), indices)
    return None if done is None else done.astype(self.dtype)


@functools.lru_cache(maxsize=256)
def _regular_plan(
    dtype: np.dtype[Any], shape: Sizes, last: bool, kernel: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool,
    include_pad: bool, override: int | None,
) -> _MeansPlan | None:  # fmt: skip
    """The means of windows of one size. The first dimension has the divisor. Networks repeat their shapes."""
    spatial, stride = shape[-2:], stride or kernel
    counts = output_sizes(spatial, kernel, stride, padding, (1, 1), ceil_mode)
    divisors = (override, None if override is None else 1)
    lines, columns = (
        regular_windows(size, count, length, step, pad, include_pad, divisor)
        for size, count, length, step, pad, divisor in zip(
            spatial, counts, kernel, stride, padding, divisors, strict=True
        )
    )
    return _means_plan(dtype, shape, lines, columns, last)


@functools.lru_cache(maxsize=256)
def _adaptive_plan(dtype: np.dtype[Any], shape: Sizes, last: bool, counts: Sizes) -> _MeansPlan | None:
    if 0 in counts:
        return None
    ensure_room((*shape[:-2], *counts), dtype.itemsize)
    lines, columns = map(adaptive_windows, shape[-2:], counts)
    return _means_plan(dtype, shape, lines, columns, last)


def avg_pool2d(
    self: Array, kernel_size: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None, workspace: Workspace = DIRECT,
) -> Array | None:  # fmt: skip
    """Lowering of `avg_pool2d`: means of windows of images."""
    last = channel_last(self, 2)
    window = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return means(self, _regular_plan(self.dtype, self.shape, last, *window), last, workspace)


def avg_pool2d_backward(
    self: Array, input: Array, kernel_size: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None, workspace: Workspace = DIRECT,
) -> Array | None:  # fmt: skip
    """Lowering of `avg_pool2d_backward`: the gradient of the images."""
    last = channel_last(input, 2)
    window = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return means_backward(self, input, _regular_plan(self.dtype, input.shape, last, *window), last, workspace)


def adaptive_avg_pool2d(self: Array, output_size: Sizes, workspace: Workspace = DIRECT) -> Array | None:
    """Lowering of `adaptive_avg_pool2d`: means of as many windows as asked for."""
    last = channel_last(self, 2)
    return means(self, _adaptive_plan(self.dtype, self.shape, last, output_size), last, workspace)


def adaptive_avg_pool2d_backward(self: Array, input: Array, workspace: Workspace = DIRECT) -> Array | None:
    """Lowering of `adaptive_avg_pool2d_backward`: the gradient of the images."""
    last = channel_last(input, 2)
    plan = _adaptive_plan(self.dtype, input.shape, last, self.shape[-2:])
    return means_backward(self, input, plan, last, workspace)
