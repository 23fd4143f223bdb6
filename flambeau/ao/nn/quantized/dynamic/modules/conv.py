"""Convolutions with quantized weights, for floats that are quantized as they come."""

from __future__ import annotations

from typing import Any

from ......_ops.quantized.layers import dynamic_convolution
from ....._constructors import CONV, PLACE, shown_as, takes
from ...modules import conv

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Dynamic(conv._ConvNd):
    _get_name = shown_as("DynamicQuantized{}")

    def forward(self, input: Any, reduce_range: bool = True) -> Any:
        """The floats of the result."""
        return dynamic_convolution(
            self._product, input, self.weight(), self.bias(), relu=self._relu, reduce_range=reduce_range
        )


class Conv1d(_Dynamic, conv.Conv1d):
    """A convolution in one dimension."""

    @takes(CONV, PLACE, "reduce_range=True")
    def __init__(self, options: dict[str, Any]) -> None:
        del options["reduce_range"]  # as in PyTorch, only that of `forward` counts
        super().__init__(**options)


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
