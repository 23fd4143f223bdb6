"""Convolutions that compute with floats as quantized ones will."""

from __future__ import annotations

from typing import Any

from flambeau import nn
from flambeau.nn import functional as F

from ....._constructors import CONV, CONV_OPTIONS, CONV_TRANSPOSE, PLACE, attributes, shown_as, takes
from .utils import ReferenceQuantizedModule

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _ConvNd(ReferenceQuantizedModule):
    """What the convolutions share; the other base is the ordinary one."""

    _FURTHER: tuple[str, ...] = ()
    bias: Any
    padding_mode: str
    _conv_forward: Any

    @takes(CONV, PLACE, "weight_qparams=None")
    def __init__(self, options: dict[str, Any]) -> None:
        self._make(options)

    def _make(self, options: dict[str, Any]) -> None:
        weight_qparams = options.pop("weight_qparams")
        make: Any = super().__init__
        make(**options)
        self._init_weight_qparams(weight_qparams, options["device"])

    _get_name = shown_as("Quantized{}(Reference)")

    def forward(self, x: Any, *further: Any) -> Any:
        """The result in floats."""
        return self._conv_forward(x, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_conv: Any, weight_qparams: dict[str, Any]) -> Any:
        """A reference layer with the parameters of an ordinary one."""
        options = attributes(float_conv, (*CONV_OPTIONS, *cls._FURTHER))
        made = cls(**options, bias=float_conv.bias is not None, weight_qparams=weight_qparams)
        made.weight = nn.Parameter(float_conv.weight.detach())
        if float_conv.bias is not None:
            made.bias = nn.Parameter(float_conv.bias.detach())
        return made


class Conv1d(_ConvNd, nn.Conv1d):
    """A convolution in one dimension."""


class Conv2d(_ConvNd, nn.Conv2d):
    """A convolution in two dimensions."""


class Conv3d(_ConvNd, nn.Conv3d):
    """A convolution in three dimensions."""


class _ConvTransposeNd(_ConvNd):
    _FURTHER = ("output_padding",)
    stride: Any
    padding: Any
    dilation: Any
    groups: int
    kernel_size: Any
    output_padding: Any
    _output_padding: Any

    @takes(CONV_TRANSPOSE, PLACE, "weight_qparams=None")
    def __init__(self, options: dict[str, Any]) -> None:
        self._make(options)

    def forward(self, x: Any, output_size: Any = None) -> Any:
        """The result in floats."""
        count = len(self.kernel_size)
        further = self.output_padding
        if output_size is not None:
            geometry = self.stride, self.padding, self.kernel_size, count, self.dilation
            further = self._output_padding(x, output_size, *geometry)
        run = getattr(F, f"conv_transpose{count}d")
        return run(x, self.get_weight(), self.bias, self.stride, self.padding, further, self.groups, self.dilation)


class ConvTranspose1d(_ConvTransposeNd, nn.ConvTranspose1d):
    """A transposed convolution in one dimension."""


class ConvTranspose2d(_ConvTransposeNd, nn.ConvTranspose2d):
    """A transposed convolution in two dimensions."""


class ConvTranspose3d(_ConvTransposeNd, nn.ConvTranspose3d):
    """A transposed convolution in three dimensions."""
