"""Convolutions of quantized tensors."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

from ....._ops.quantized.layers import quantized_layer
from ...._constructors import CONV, CONV_OPTIONS, CONV_TRANSPOSE, PLACE, attributes, takes
from .utils import WeightedQuantizedModule, output_parameters, quantized_weight

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


def _as_tuple(value: Any, count: int) -> Any:
    if isinstance(value, str):  # padding may be a word
        return value
    return (value,) * count if isinstance(value, int) else tuple(value)


class _ConvNd(WeightedQuantizedModule):
    """What the convolutions share: a weight of codes, a bias of floats, the options of the ordinary ones."""

    _dimensions = 2
    _transposed = False
    _relu = False
    _name = ""
    kernel_size: Any
    stride: Any
    padding: Any
    dilation: Any
    output_padding: Any

    @takes(CONV, PLACE, "*, output_padding=0")
    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__()
        in_channels, out_channels, groups = (options[name] for name in ("in_channels", "out_channels", "groups"))
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.transposed = self._transposed
        for name in ("kernel_size", "stride", "padding", "dilation", "output_padding"):
            setattr(self, name, _as_tuple(options[name], self._dimensions))
        self.padding_mode = options["padding_mode"]
        if self.padding_mode not in ("zeros", "reflect"):
            raise ValueError(f"'padding_mode' {self.padding_mode} is not supported by quantized convolution")
        shape = (in_channels, out_channels // groups) if self._transposed else (out_channels, in_channels // groups)
        weight = torch._empty_affine_quantized([*shape, *self.kernel_size], scale=1, zero_point=0, dtype=torch.qint8)
        self.set_weight_bias(weight, torch.zeros(out_channels) if options["bias"] else None)
        self.scale = 1.0
        self.zero_point = 0

    def _get_name(self) -> str:
        return self._name or f"Quantized{type(self).__name__}"

    def extra_repr(self) -> str:
        """The options that are not the defaults, scale and zero point."""
        count = self._dimensions
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
        text += f"scale={self.scale}, zero_point={self.zero_point}"
        for name, default in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            if getattr(self, name) != (default,) * count:
                text += f", {name}={getattr(self, name)}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text + ("" if self.bias() is not None else ", bias=False")

    def set_weight_bias(self, w: Any, b: Any) -> None:
        """Take over a quantized weight and a bias."""
        self._weight, self._bias = w, b

    def weight(self) -> Any:
        """The quantized weight."""
        return self._weight

    def bias(self) -> Any:
        """The bias, in floats."""
        return self._bias

    def _product(self, x: Any, w: Any) -> Any:
        options: Any = self.stride, self.padding
        if self._transposed:
            run = getattr(F, f"conv_transpose{self._dimensions}d")
            return run(x, w, None, *options, self.output_padding, self.groups, self.dilation)
        if self.padding_mode != "zeros":
            ends = [each for size in reversed(self.padding) for each in (size, size)]
            x, options = F.pad(x, ends, mode=self.padding_mode), (self.stride, 0)
        return getattr(F, f"conv{self._dimensions}d")(x, w, None, *options, self.dilation, self.groups)

    def forward(self, input: Any) -> Any:
        """The codes of the result."""
        count = self._dimensions + 2
        if input.dim() != count:
            raise ValueError(
                f"Input shape must be `(N, C, {'L' if count == 3 else 'H, W' if count == 4 else 'D, H, W'})`!"
            )
        return quantized_layer(
            self._product, input, self._weight, self._bias, self.scale, self.zero_point, channel=1, relu=self._relu
        )

    @classmethod
    def _of_layer(cls, layer: Any) -> Any:
        names = (*CONV_OPTIONS, "output_padding") if cls._transposed else CONV_OPTIONS
        return cls(**attributes(layer, names), bias=layer.bias is not None)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantized layer for one of floats that was watched, or trained with rounding."""
        layer, weight = mod, getattr(mod, "weight_fake_quant", None)
        if hasattr(mod, "bn"):  # trained with a batch norm, which becomes a part of the weight
            layer.weight, layer.bias = nn.utils.fuse_conv_bn_weights(
                mod.weight, mod.bias, mod.bn.running_mean, mod.bn.running_var, mod.bn.eps, mod.bn.weight, mod.bn.bias
            )
        elif isinstance(mod, nn.Sequential):
            layer = mod[0]
        if weight is None and not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined.")
        made = cls._of_layer(layer)
        bias = None if layer.bias is None else layer.bias.detach().float()
        made.set_weight_bias(quantized_weight(layer, weight or mod.qconfig.weight()), bias)
        made.scale, made.zero_point = output_parameters(mod)
        return made

    @classmethod
    def from_reference(cls, ref_qconv: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The quantized layer for one that computes with floats as codes would."""
        layer = ref_qconv[0] if isinstance(ref_qconv, nn.Sequential) else ref_qconv
        made = cls._of_layer(layer)
        bias = None if layer.bias is None else layer.bias.detach().float()
        made.set_weight_bias(layer.get_quantized_weight(), bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


class Conv1d(_ConvNd):
    """A convolution of codes in one dimension."""

    _FLOAT_MODULE: Any = nn.Conv1d
    _dimensions = 1


class Conv2d(_ConvNd):
    """A convolution of codes in two dimensions."""

    _FLOAT_MODULE: Any = nn.Conv2d
    _dimensions = 2


class Conv3d(_ConvNd):
    """A convolution of codes in three dimensions."""

    _FLOAT_MODULE: Any = nn.Conv3d
    _dimensions = 3


class _ConvTransposeNd(_ConvNd):
    """What the transposed ones share: where their options stand."""

    _transposed = True

    @takes(CONV_TRANSPOSE, PLACE)
    def __init__(self, options: dict[str, Any]) -> None:
        if options["padding_mode"] != "zeros":
            raise ValueError('Only "zeros" padding mode is supported for ' + type(self).__name__)
        super().__init__(**options)

    @classmethod
    def from_reference(cls, ref_qconvt: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The quantized layer for one that computes with floats as codes would."""
        return super().from_reference(ref_qconvt, output_scale, output_zero_point)


class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution of codes in one dimension."""

    _FLOAT_MODULE: Any = nn.ConvTranspose1d
    _dimensions = 1


class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution of codes in two dimensions."""

    _FLOAT_MODULE: Any = nn.ConvTranspose2d
    _dimensions = 2


class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution of codes in three dimensions."""

    _FLOAT_MODULE: Any = nn.ConvTranspose3d
    _dimensions = 3
