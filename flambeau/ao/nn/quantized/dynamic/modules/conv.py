"""Convolutions with quantized weights, for floats that are quantized as they come."""

from __future__ import annotations

from typing import Any

from ......_ops.quantized.layers import dynamic_layer
from ...modules import conv

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Dynamic(conv._ConvNd):
    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def forward(self, input: Any, reduce_range: bool = True) -> Any:
        """The floats of the result."""
        return dynamic_layer(
            self._product, input, self.weight(), self.bias(), channel=1, relu=self._relu, reduce_range=reduce_range
        )


class Conv1d(_Dynamic, conv.Conv1d):
    """A convolution in one dimension."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        reduce_range: bool = True,  # as in PyTorch, only that of `forward` counts
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )


class Conv2d(_Dynamic, conv.Conv2d):
    """A convolution in two dimensions."""


class Conv3d(_Dynamic, conv.Conv3d):
    """A convolution in three dimensions."""


class ConvTranspose1d(_Dynamic, conv.ConvTranspose1d):
    """A transposed convolution in one dimension."""


class ConvTranspose2d(_Dynamic, conv.ConvTranspose2d):
    """A transposed convolution in two dimensions."""


class ConvTranspose3d(_Dynamic, conv.ConvTranspose3d):
    """A transposed convolution in three dimensions."""
