"""Channels moved into pixels and back, and channels shuffled between groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._backends import arrays
from ...._core.backend import backend_of_array
from ...._core.geometry.layout import empty_array, strides_like
from ...._core.geometry.moving_windows import new_array, suggests_channels_last
from ...._core.tensor import Tensor
from ...._dispatch.arguments.scalar import integer
from ...._dispatch.axes import Last
from ...._dispatch.dispatch import Array, primitive
from ...._dispatch.public.registry import public


def _arranged(shuffled: Any, shape: tuple[int, ...], source: Any) -> Any:
    """`shuffled` in its final shape, with the channels innermost where `source`, an image, has them there."""
    last = source.ndim == 4 and suggests_channels_last(source)
    result = new_array(shape, source.dtype, last, source)
    split = result.reshape(shuffled.shape) if type(result) is np.ndarray else None
    if split is None or not np.may_share_memory(split, result) or not arrays.store(split, shuffled):
        result[...] = shuffled.reshape(shape)
    return result


def _pixel_shuffle_gradient(grad: Tensor, upscale_factor: int) -> Tensor:
    return _pixel_unshuffle(grad, upscale_factor)


@primitive("PixelShuffleBackward0", axes=Last(3), self=_pixel_shuffle_gradient)
def _pixel_shuffle(self: Array, upscale_factor: int) -> Array:
    *outer, channels, height, width = self.shape
    factor, rank = upscale_factor, len(outer)
    channels //= factor * factor
    split = self.reshape(*outer, channels, factor, factor, height, width)
    moved = split.transpose(*range(rank + 1), rank + 3, rank + 1, rank + 4, rank + 2)
    return _arranged(moved, (*outer, channels, height * factor, width * factor), self)


@primitive(
    "PixelUnshuffleBackward0", axes=Last(3), self=lambda grad, downscale_factor: _pixel_shuffle(grad, downscale_factor)
)
def _pixel_unshuffle(self: Array, downscale_factor: int) -> Array:
    *outer, channels, height, width = self.shape
    factor, rank = downscale_factor, len(outer)
    height, width = height // factor, width // factor
    split = self.reshape(*outer, channels, height, factor, width, factor)
    moved = split.transpose(*range(rank + 1), rank + 2, rank + 4, rank + 1, rank + 3)
    return _arranged(moved, (*outer, channels * factor * factor, height, width), self)


def _shuffled(self: Any, groups: int) -> Any:
    if not self.size:
        return empty_array(self.shape, strides_like(self, None), self.dtype, backend_of_array(self))
    batch, channels, *sizes = self.shape
    split = self.reshape(batch, groups, channels // groups, *sizes)
    return _arranged(np.swapaxes(split, 1, 2), self.shape, self)


def _channel_shuffle_gradient(grad: Tensor, groups: int) -> Tensor:
    return _channel_shuffle(grad, grad._array.shape[1] // groups)


@primitive("ChannelShuffleBackward0", self=_channel_shuffle_gradient)
def _channel_shuffle(self: Array, groups: int) -> Array:
    return _shuffled(self, groups)


def _no_derivative(grad: Tensor) -> Any:
    raise RuntimeError(
        "derivative for aten::native_channel_shuffle is not implemented: use channel_shuffle, which has one"
    )


@primitive("NotImplemented", input=_no_derivative)
def _native_channel_shuffle(input: Array, groups: int) -> Array:
    return _shuffled(input, groups)


def _whole(name: str, argument: str, value: Any) -> int:
    """An argument that is an integer of Python's, of NumPy's or in a tensor."""
    number = integer(value)
    if number is None:
        raise TypeError(f"{name}(): argument '{argument}' (position 2) must be int, not {type(value).__name__}")
    return number


def _checked_factor(name: str, argument: str, input: Tensor, given: Any) -> int:
    factor = _whole(name, argument, given)
    dims = input._array.ndim
    if dims < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {dims} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {argument}, but got {factor}")
    return factor


@public("nn.functional.pixel_shuffle", method=False)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., C * r**2, H, W) as (..., C, H * r, W * r): each r**2 channels become a square of pixels."""
    upscale_factor = _checked_factor("pixel_shuffle", "upscale_factor", input, upscale_factor)
    channels, square = input._array.shape[-3], upscale_factor * upscale_factor
    if channels % square:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {square}"
        )
    return _pixel_shuffle(input, upscale_factor)


@public("nn.functional.pixel_unshuffle", method=False)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The opposite of `pixel_shuffle`."""
    downscale_factor = _checked_factor("pixel_unshuffle", "downscale_factor", input, downscale_factor)
    for name, dim in (("height", -2), ("width", -1)):
        size = input._array.shape[dim]
        if size % downscale_factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({dim})={size} is "
                f"not divisible by {downscale_factor}"
            )
    return _pixel_unshuffle(input, downscale_factor) if input._array.size else input.clone()


def _checked_groups(input: Tensor, given: Any) -> int:
    shape, groups = input._array.shape, _whole("channel_shuffle", "groups", given)
    if len(shape) <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups."
        )
    return groups


@public("nn.functional.channel_shuffle", method=False)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels, in `groups` groups, dealt out one by one: first of each group, second of each group, ..."""
    groups = _checked_groups(input, groups)
    return _channel_shuffle(input, groups)


@public("nn.functional.native_channel_shuffle", method=False)
def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """`channel_shuffle` without a derivative."""
    groups = _checked_groups(input, groups)
    return _native_channel_shuffle(input, groups)
