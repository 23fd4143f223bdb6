"""Convolutions with a batch norm, a rectifier or both, whose weights are rounded in training.

The batch norm becomes a part of the weight when the model is quantized. So the weight is rounded as scaled by it, with
the statistics known so far; the result is scaled back before the norm sees it.
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

from ....._constructors import CONV, CONV_OPTIONS, attributes, takes
from ....qat.modules import conv
from ...modules import fused
from ._norm import WithNorm

__all__ = [
    "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d",
    "ConvReLU3d", "freeze_bn_stats", "update_bn_stats",
]  # fmt: skip


class _ConvBn(WithNorm, conv._ConvNd):
    """A convolution and a batch norm, `bn`."""

    _NORM: Any
    _relu = False
    out_channels: int

    @takes(CONV.replace("bias=True", "bias=None"), "eps=1e-5, momentum=0.1, freeze_bn=False, qconfig=None")
    def __init__(self, options: dict[str, Any]) -> None:
        eps, momentum, freeze_bn = (options.pop(name) for name in ("eps", "momentum", "freeze_bn"))
        bias = options["bias"]
        super().__init__(**{**options, "bias": False})
        self.freeze_bn = freeze_bn if self.training else True
        self.bn = self._NORM(self.out_channels, eps, momentum, True, True)
        self.bias = nn.Parameter(torch.empty(self.out_channels)) if bias else None
        self.reset_bn_parameters()
        own: Any = self
        self.weight_fake_quant = own._modules.pop("weight_fake_quant")  # behind the norm in the state
        if self.training and freeze_bn:
            self.freeze_bn_stats()
        elif self.training:
            self.update_bn_stats()

    def reset_bn_parameters(self) -> None:
        """Random numbers for the norm's weight and for the bias."""
        self.bn.reset_running_stats()
        nn.init.uniform_(self.bn.weight)
        nn.init.zeros_(self.bn.bias)
        if self.bias is not None:
            bound = 1 / math.sqrt(self.weight[0].numel())
            nn.init.uniform_(self.bias, -bound, bound)

    def reset_running_stats(self) -> None:
        """Forget the running statistics of the batch norm."""
        self.bn.reset_running_stats()

    def forward(self, input: Any) -> Any:
        """The norm of the convolution by the rounded weight."""
        factor = self.bn.weight / torch.sqrt(self.bn.running_var + self.bn.eps)
        ndim = self.weight.dim()
        rounded = self.weight_fake_quant(self.weight * factor.reshape(-1, *[1] * (ndim - 1)))
        result = self._conv_forward(input, rounded, torch.zeros(self.out_channels, dtype=input.dtype))
        channels = [1, -1, *[1] * (ndim - 2)]
        result = result / factor.reshape(channels)
        if self.bias is not None:
            result = result + self.bias.reshape(channels)
        result = self.bn(result)
        return F.relu(result) if self._relu else result

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """A layer of this class with the parameters of a convolution and a batch norm in a row."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        if not getattr(mod, "qconfig", None):
            raise AssertionError("Input float module must have a valid qconfig")
        layer, norm = mod[0], mod[1]
        made = cls(
            **attributes(layer, CONV_OPTIONS),
            bias=layer.bias is not None,
            eps=norm.eps,
            momentum=norm.momentum,
            qconfig=mod.qconfig,
        )
        return made._take_over(layer, norm)

    def to_float(self) -> Any:
        """A convolution that is both, and a rectifier if there is one."""
        made = self._FLOAT_CONV_MODULE(**attributes(self, CONV_OPTIONS), bias=self.bias is not None)
        made.weight, made.bias = self._merged(nn.utils.fuse_conv_bn_weights)
        if not self._relu:
            return made
        row: Any = getattr(fused, f"ConvReLU{self.weight.dim() - 2}d")
        return row(made, nn.ReLU())


class ConvBn1d(_ConvBn, nn.Conv1d):
    """A convolution in one dimension and a batch norm."""

    _FLOAT_MODULE: Any = fused.ConvBn1d
    _FLOAT_CONV_MODULE: Any = nn.Conv1d
    _NORM: Any = nn.BatchNorm1d


class ConvBnReLU1d(ConvBn1d):
    """A convolution in one dimension, a batch norm and a rectifier."""

    _FLOAT_MODULE: Any = fused.ConvBnReLU1d
    _relu = True


class ConvBn2d(_ConvBn, nn.Conv2d):
    """A convolution in two dimensions and a batch norm."""

    _FLOAT_MODULE: Any = fused.ConvBn2d
    _FLOAT_CONV_MODULE: Any = nn.Conv2d
    _NORM: Any = nn.BatchNorm2d


class ConvBnReLU2d(ConvBn2d):
    """A convolution in two dimensions, a batch norm and a rectifier."""

    _FLOAT_MODULE: Any = fused.ConvBnReLU2d
    _relu = True


class ConvBn3d(_ConvBn, nn.Conv3d):
    """A convolution in three dimensions and a batch norm."""

    _FLOAT_MODULE: Any = fused.ConvBn3d
    _FLOAT_CONV_MODULE: Any = nn.Conv3d
    _NORM: Any = nn.BatchNorm3d


class ConvBnReLU3d(ConvBn3d):
    """A convolution in three dimensions, a batch norm and a rectifier."""

    _FLOAT_MODULE: Any = fused.ConvBnReLU3d
    _relu = True


class _Rectified(nn.Module):
    """What a layer becomes with a rectifier behind it."""

    def forward(self, input: Any) -> Any:
        """The rectified result of the layer by the rounded weight."""
        return F.relu(super().forward(input))


class ConvReLU1d(_Rectified, conv.Conv1d):
    """A convolution in one dimension and a rectifier."""

    _FLOAT_MODULE: Any = fused.ConvReLU1d


class ConvReLU2d(_Rectified, conv.Conv2d):
    """A convolution in two dimensions and a rectifier."""

    _FLOAT_MODULE: Any = fused.ConvReLU2d


class ConvReLU3d(_Rectified, conv.Conv3d):
    """A convolution in three dimensions and a rectifier."""

    _FLOAT_MODULE: Any = fused.ConvReLU3d


def update_bn_stats(mod: Any) -> None:
    """Let the norms of such modules follow the batches; for `Module.apply`."""
    if isinstance(mod, WithNorm):
        mod.update_bn_stats()


def freeze_bn_stats(mod: Any) -> None:
    """Let the norms of such modules keep their statistics; for `Module.apply`."""
    if isinstance(mod, WithNorm):
        mod.freeze_bn_stats()
