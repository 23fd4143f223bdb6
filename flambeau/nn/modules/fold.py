"""Images to columns of windows, and back."""

from __future__ import annotations

from typing import ClassVar

from ..._core.tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["Fold", "Unfold"]

_Sizes = int | tuple[int, ...]


class _Windows(Module):
    """Which windows there are."""

    __constants__: ClassVar[list[str]] = ["kernel_size", "dilation", "padding", "stride"]

    def __init__(self, kernel_size: _Sizes, dilation: _Sizes = 1, padding: _Sizes = 0, stride: _Sizes = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self.__constants__)


class Fold(_Windows):
    """Sums columns of windows into images: what `Unfold` took apart, with overlapping elements added.

    Args:
        output_size (int or tuple of ints): the height and width of the images.
        kernel_size (int or tuple of ints): the size of the window, one number for all dimensions or one for each.
        dilation (int or tuple of ints): the distance between neighbouring elements of the window. Default: `1`.
        padding (int or tuple of ints): how many rows and columns of zeros lie around the images. Default: `0`.
        stride (int or tuple of ints): the step of the window along each dimension. Default: `1`.

    Shape:
        input: (N, C * window size, windows), or without N
        output: (N, C, *output_size), or without N

    Example:
        >>> windows = flambeau.nn.Unfold(2)(flambeau.ones(1, 1, 3, 3))
        >>> flambeau.nn.Fold((3, 3), 2)(windows)
        tensor([[[[1., 2., 1.],
                  [2., 4., 2.],
                  [1., 2., 1.]]]])
    """

    __constants__: ClassVar[list[str]] = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self, output_size: _Sizes, kernel_size: _Sizes, dilation: _Sizes = 1, padding: _Sizes = 0, stride: _Sizes = 1
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class Unfold(_Windows):
    """Lays out the windows of images as columns.

    Args:
        kernel_size (int or tuple of ints): the size of the window, one number for all dimensions or one for each.
        dilation (int or tuple of ints): the distance between neighbouring elements of the window. Default: `1`.
        padding (int or tuple of ints): how many elements are added on both sides of each dimension. Default: `0`.
        stride (int or tuple of ints): the step of the window along each dimension. Default: `1`.

    Shape:
        input: (N, C, H, W) or (C, H, W)
        output: (N, C * window size, windows), without N if the input has none

    Example:
        >>> flambeau.nn.Unfold(2)(flambeau.arange(9.0).view(1, 1, 3, 3))
        tensor([[[0., 1., 3., 4.],
                 [1., 2., 4., 5.],
                 [3., 4., 6., 7.],
                 [4., 5., 7., 8.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
