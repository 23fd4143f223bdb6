"""Average pooling, and pooling by power means."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...._core.backend import beside
from ...._core.dtype import bfloat16, float16, float32, float64, int64
from ...._core.geometry.moving_windows import output_sizes
from ...._core.tensor import Tensor
from ...._dispatch.arguments.autocast_rules import FULL, on
from ...._dispatch.arguments.precision import in_single
from ...._dispatch.axes import Images
from ...._dispatch.dispatch import Array, Primitive, primitive
from ...._dispatch.public.registry import public
from ...create.like import zeros_like
from ...pointwise.activation import relu
from ...reduce.reductions import no_kernel
from .pool_window import (
    Sizes,
    along,
    borders,
    check_line,
    check_window,
    empty,
    empty_windows,
    images_last,
    is_integer,
    padded,
    sizes,
    window_slices,
)  # fmt: skip


@functools.lru_cache(maxsize=32)
def _divisor(
    spatial: Sizes, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool, include_pad: bool,
    override: int | None, array_type: Any,
) -> Any:  # fmt: skip
    """By what the sum over each window is divided: the number of its elements, with those in the padding or without."""
    if override is not None:
        return np.asarray(override, array_type)
    if not (ceil_mode or any(padding)):
        return np.asarray(math.prod(kernel), array_type)
    rank = len(kernel)
    divisor = np.ones(counts, np.int64)
    for dim in range(rank):
        start = np.arange(counts[dim]) * stride[dim] - padding[dim]
        end = np.minimum(start + kernel[dim], spatial[dim] + padding[dim])
        if not include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, spatial[dim])
        divisor *= along(end - start, dim, rank)
    return divisor.astype(array_type)


def _quotient(total: Any, divisor: Any) -> Any:
    divisor = beside(divisor, total)
    if total.dtype.kind == "f":
        return np.divide(total, divisor, total)
    return (np.abs(total) // np.abs(divisor)) * (np.sign(total) * np.sign(divisor))  # integers round towards zero


@in_single
def averaged(
    array: Any, kernel: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool, include_pad: bool, override: int | None,
    last: bool,
) -> Any:  # fmt: skip
    """The mean of each window."""
    rank = len(kernel)
    spatial = array.shape[-rank:]
    ones = (1,) * rank
    counts = output_sizes(spatial, kernel, stride, padding, ones, ceil_mode)
    wide = padded(array, *borders(spatial, counts, kernel, stride, padding, ones), 0)
    total = empty((*array.shape[:-rank], *counts), array.dtype, last, array)
    total.fill(0)
    for _, key in window_slices(counts, kernel, stride, ones):
        total += wide[key]
    divisor = _divisor(spatial, counts, kernel, stride, padding, ceil_mode, include_pad, override, array.dtype)
    return _quotient(total, divisor)


@in_single
def averaged_backward(
    grad: Any, source: Any, kernel: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool, include_pad: bool,
    override: int | None, last: bool,
) -> Any:  # fmt: skip
    """The transpose of `averaged`: each value shared among the elements of its window."""
    rank = len(kernel)
    spatial = source.shape[-rank:]
    ones = (1,) * rank
    counts = output_sizes(spatial, kernel, stride, padding, ones, ceil_mode)
    divisor = _divisor(spatial, counts, kernel, stride, padding, ceil_mode, include_pad, override, grad.dtype)
    share = grad / beside(divisor, grad)
    before, after = borders(spatial, counts, kernel, stride, padding, ones)
    extent = [size + low + high for size, low, high in zip(spatial, before, after, strict=True)]
    wide = empty((*source.shape[:-rank], *extent), grad.dtype, last, grad)
    wide.fill(0)
    for _, key in reversed(window_slices(counts, kernel, stride, ones)):
        wide[key] += share
    if tuple(extent) == spatial:
        return wide
    result = empty(source.shape, grad.dtype, last, grad)
    result[...] = wide[(..., *[slice(low, low + size) for low, size in zip(before, spatial, strict=True)])]
    return result


def _windows(self: Array, kernel: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool, *counted: Any) -> Array:
    """The shape rule of means."""
    rank = len(kernel)
    counts = output_sizes(self.shape[-rank:], kernel, stride or kernel, padding, (1,) * rank, ceil_mode)
    return empty_windows(self, counts, images_last(self, rank))


def _shares(self: Array, input: Array, kernel: Sizes, *window: Any) -> Array:
    """The shape rule of the gradient of means."""
    return empty(input.shape, self.dtype, images_last(input, len(kernel)), self)


def _averaging(rank: int) -> Primitive[..., Tensor]:
    """The op that averages windows in `rank` dimensions, with its transpose as derivative."""

    def pool(
        self: Array, kernel_size: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool, count_include_pad: bool,
        divisor_override: int | None,
    ) -> Array:  # fmt: skip
        window = kernel_size, stride or kernel_size, padding, ceil_mode, count_include_pad, divisor_override
        return averaged(self, *window, images_last(self, rank))

    def share(
        self: Array, input: Array, kernel_size: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool,
        count_include_pad: bool, divisor_override: int | None,
    ) -> Array:  # fmt: skip
        window = kernel_size, stride or kernel_size, padding, ceil_mode, count_include_pad, divisor_override
        return averaged_backward(self, input, *window, images_last(input, rank))

    def again(
        grad: Tensor, kernel_size: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool, count_include_pad: bool,
        divisor_override: int | None,
    ) -> Tensor:  # fmt: skip
        return forward(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    def gradient(
        grad: Tensor, self: Tensor, kernel_size: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool,
        count_include_pad: bool, divisor_override: int | None,
    ) -> Tensor:  # fmt: skip
        return backward(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    node, name = f"AvgPool{rank}D", f"avg_pool{rank}d"
    forward: Primitive[..., Tensor]
    forward = primitive(f"{node}Backward0", op_name=name, axes=Images(), shape=_windows, self=gradient)(pool)
    backward = primitive(
        f"{node}BackwardBackward0", op_name=f"{name}_backward", axes=Images(), shape=_shares, self=again,
        input=lambda grad: zeros_like(grad),
    )(share)  # fmt: skip
    forward.is_linear = True
    return forward


_OPS = {rank: _averaging(rank) for rank in (2, 3)}

_DTYPES = {
    2: (int64, float16, bfloat16, float32, float64),
    3: (int64, float32, float64),
}
"""What PyTorch has kernels for."""


def _averages(
    rank: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:  # fmt: skip
    # What is kept is found by equality: 2.0 is no size, though it equals one, and inside of tuples types are not seen.
    usual = type(kernel_size) is type(padding) is int and (stride is None or type(stride) is int)
    window = (_kept_window if usual else _window)(
        rank, input._array.shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )
    if input._kind.dtype not in _DTYPES[rank]:
        raise no_kernel("avg_pool2d" if rank == 2 else "avg_pool3d_out_frame", input)
    return _OPS[rank](input, *window)


def _window(
    rank: int, shape: Sizes, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
) -> tuple[Sizes, Sizes, Sizes, bool, bool, int | None]:  # fmt: skip
    """The sizes, steps and paddings of windows that fit an input of `shape`, and how they are counted."""
    name = f"avg_pool{rank}d"
    kernel = sizes(name, "kernel_size", kernel_size, rank, 2)
    steps = sizes(name, "stride", stride, rank, 3)
    pads = sizes(name, "padding", padding, rank, 4)
    if divisor_override == 0:
        raise RuntimeError(f"{name}: divisor must be not zero: divisor_override is 0")
    if rank == 2 and len(shape) < 3:
        raise IndexError(f"{name}: Dimension out of range: images have 3 or 4 dimensions, not the shape {list(shape)}")
    check_window(name, shape, kernel, steps or kernel, pads, (1,) * rank, ceil_mode)
    return kernel, steps, pads, bool(ceil_mode), bool(count_include_pad), divisor_override


_kept_window = functools.lru_cache(256)(_window)


@public("nn.functional.avg_pool1d", method=False)
def avg_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """The means of windows along the last dimension."""
    check_line("avg_pool1d", input)
    kernel = sizes("avg_pool1d", "kernel_size", kernel_size, 1, 2)
    steps = sizes("avg_pool1d", "stride", stride, 1, 3)
    pads = sizes("avg_pool1d", "padding", padding, 1, 4)
    window = (1, *kernel), (1, *(steps or kernel)), (0, *pads)
    return _averages(2, input.unsqueeze(-2), *window, ceil_mode, count_include_pad, None).squeeze(-2)


@public("nn.functional.avg_pool2d", function=False, method=False, out=True)
def avg_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """The means of windows in the last two dimensions."""
    return _averages(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@public("nn.functional.avg_pool3d", function=False, method=False, out=True, autocast=on(cpu=FULL))
def avg_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """The means of windows in the last three dimensions."""
    return _averages(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _power_mean(rank: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    is_number = is_integer(kernel_size) and (rank == 1 or not isinstance(kernel_size, (Tensor, np.ndarray)))
    kernel = (kernel_size,) * rank if is_number else tuple(kernel_size)
    if len(kernel) != rank:
        raise (RuntimeError if rank == 1 else ValueError)(
            f"lp_pool{rank}d: kernel_size has {len(kernel)} values (expected {rank}): {list(kernel)}"
        )
    means: Tensor = (avg_pool1d, avg_pool2d, avg_pool3d)[rank - 1](input.pow(norm_type), kernel, stride, 0, ceil_mode)
    total: Tensor = means.sign() * relu(means.abs()) * math.prod(kernel)
    return total.pow(1.0 / norm_type)


@public("nn.functional.lp_pool1d", function=False, method=False)
def lp_pool1d(input: Tensor, norm_type: float, kernel_size: int, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x ** norm_type) ** (1 / norm_type) over windows along the last dimension."""
    return _power_mean(1, input, norm_type, kernel_size, stride, ceil_mode)


@public("nn.functional.lp_pool2d", function=False, method=False)
def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x ** norm_type) ** (1 / norm_type) over windows in the last two dimensions."""
    return _power_mean(2, input, norm_type, kernel_size, stride, ceil_mode)


@public("nn.functional.lp_pool3d", function=False, method=False)
def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x ** norm_type) ** (1 / norm_type) over windows in the last three dimensions."""
    return _power_mean(3, input, norm_type, kernel_size, stride, ceil_mode)
