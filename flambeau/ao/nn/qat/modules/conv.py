"""Convolutions whose weights are rounded as their codes will be."""

from __future__ import annotations

from typing import Any

from flambeau import nn

from ...._constructors import CONV, CONV_OPTIONS, PLACE, attributes, takes
from ._base import copied_layer

__all__ = ["Conv1d", "Conv2d", "Conv3d"]


class _ConvNd:
    """What the convolutions share; the other base is the ordinary one."""

    _FLOAT_MODULE: Any
    _FLOAT_CONV_MODULE: Any
    qconfig: Any
    weight: Any
    bias: Any
    padding_mode: Any
    training: bool
    _conv_forward: Any

    @takes(CONV, "qconfig=None", PLACE)
    def __init__(self, options: dict[str, Any]) -> None:
        qconfig = options.pop("qconfig")
        make: Any = super().__init__
        make(**options)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight()

    def forward(self, input: Any) -> Any:
        """The convolution by the rounded weight."""
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """A layer of this class with the parameters of a layer that has a `qconfig`."""
        layer = copied_layer(cls, mod, (nn.Conv1d, nn.Conv2d, nn.Conv3d))
        made = cls(**attributes(layer, CONV_OPTIONS), bias=layer.bias is not None, qconfig=mod.qconfig)
        made.weight = layer.weight
        made.bias = layer.bias
        return made

    def to_float(self) -> Any:
        """An ordinary layer with the same parameters, and what belongs to it in a row."""
        made = self._FLOAT_CONV_MODULE(**attributes(self, CONV_OPTIONS), bias=self.bias is not None)
        made.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            made.bias = nn.Parameter(self.bias.detach())
        if self._FLOAT_MODULE is self._FLOAT_CONV_MODULE:
            return made
        row = self._FLOAT_MODULE(made, nn.ReLU())
        return row.train(self.training)


class Conv1d(_ConvNd, nn.Conv1d):
    """A convolution in one dimension."""

    _FLOAT_MODULE: Any = nn.Conv1d
    _FLOAT_CONV_MODULE: Any = nn.Conv1d


class Conv2d(_ConvNd, nn.Conv2d):
    """A convolution in two dimensions."""

    _FLOAT_MODULE: Any = nn.Conv2d
    _FLOAT_CONV_MODULE: Any = nn.Conv2d


class Conv3d(_ConvNd, nn.Conv3d):
    """A convolution in three dimensions."""

    _FLOAT_MODULE: Any = nn.Conv3d
    _FLOAT_CONV_MODULE: Any = nn.Conv3d
