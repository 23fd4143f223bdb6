"""Channels to pixels, and back."""

from __future__ import annotations

from typing import ClassVar

from ..._core.tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Turns channels into pixels: images become larger and have fewer channels.

    Args:
        upscale_factor (int): r, by how much height and width grow.

    Shape:
        input: (*, C * r ** 2, H, W)
        output: (*, C, H * r, W * r)

    Raises:
        RuntimeError: the channels do not divide into squares of `upscale_factor`.

    Example:
        >>> flambeau.nn.PixelShuffle(2)(flambeau.arange(4.0).view(4, 1, 1))
        tensor([[[0., 1.],
                 [2., 3.]]])
    """

    __constants__: ClassVar[list[str]] = ["upscale_factor"]

    upscale_factor: int

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Turns pixels into channels: images become smaller and have more channels.

    Args:
        downscale_factor (int): r, by how much height and width shrink.

    Shape:
        input: (*, C, H * r, W * r)
        output: (*, C * r ** 2, H, W)

    Raises:
        RuntimeError: height or width does not divide into `downscale_factor`.

    Example:
        >>> flambeau.nn.PixelUnshuffle(2)(flambeau.ones(1, 4, 6)).shape
        torch.Size([4, 2, 3])
    """

    __constants__: ClassVar[list[str]] = ["downscale_factor"]

    downscale_factor: int

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
