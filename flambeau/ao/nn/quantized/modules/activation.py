"""Activations of quantized tensors whose results have scales of their own."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

from ...._constructors import attributes, shown_as
from ...quantizable.modules import activation
from .utils import output_parameters, requantized

__all__ = ["ELU", "Hardswish", "LeakyReLU", "MultiheadAttention", "PReLU", "ReLU6", "Sigmoid", "Softmax"]


class ReLU6(nn.ReLU):
    """Numbers cut to the range from 0 to 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)

    def forward(self, input: Any) -> Any:
        """The codes of the result."""
        return F.hardtanh(input, 0.0, 6.0, self.inplace)

    _get_name = shown_as("Quantized{}")

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> ReLU6:
        """The activation of codes for a watched one of floats."""
        return ReLU6(mod.inplace)


class _Requantized(nn.Module):
    """An activation of the numbers, whose results have a scale of their own; the other base is the ordinary one."""

    _OPTIONS: tuple[str, ...] = ()
    """The options of the ordinary one."""
    scale: Any
    zero_point: Any

    def forward(self, input: Any) -> Any:
        """The codes of the result."""
        return requantized(super().forward(input.dequantize()), input, self.scale, self.zero_point)

    _get_name = shown_as("Quantized{}")

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The activation of codes for a watched one of floats."""
        return cls.from_reference(mod, *output_parameters(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """The activation of codes whose results have a given scale."""
        make: Any = cls
        return make(scale=float(scale), zero_point=int(zero_point), **attributes(mod, cls._OPTIONS))


class Hardswish(_Requantized, nn.Hardswish):
    """`x * relu6(x + 3) / 6`."""

    def __init__(self, scale: float, zero_point: int, device: Any = None, dtype: Any = None) -> None:
        nn.Hardswish.__init__(self)
        self.register_buffer("scale", torch.tensor(scale))
        self.register_buffer("zero_point", torch.tensor(zero_point))

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The activation of codes for a watched one of floats."""
        return Hardswish.from_reference(mod, *output_parameters(mod))


class ELU(_Requantized, nn.ELU):
    """`x` where it is positive, `alpha * (exp(x) - 1)` elsewhere."""

    _OPTIONS = ("alpha",)

    def __init__(self, scale: float, zero_point: int, alpha: float = 1.0) -> None:
        nn.ELU.__init__(self, alpha)
        self.scale = scale
        self.zero_point = zero_point

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The activation of codes for a watched one of floats."""
        return ELU.from_reference(mod, *output_parameters(mod))


class LeakyReLU(_Requantized, nn.LeakyReLU):
    """`x` where it is positive, `negative_slope * x` elsewhere."""

    _OPTIONS = ("negative_slope", "inplace")

    def __init__(
        self,
        scale: float,
        zero_point: int,
        negative_slope: float = 1e-2,
        inplace: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        nn.LeakyReLU.__init__(self, negative_slope, inplace)
        self.register_buffer("scale", torch.tensor(scale))
        self.register_buffer("zero_point", torch.tensor(zero_point))


class Softmax(_Requantized, nn.Softmax):
    """Exponentials that add up to one along a dimension."""

    _OPTIONS = ("dim",)

    def __init__(self, dim: int | None = None, scale: float = 1.0, zero_point: int = 0) -> None:
        nn.Softmax.__init__(self, dim)
        self.scale = scale
        self.zero_point = zero_point

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The activation of codes for a watched one of floats."""
        return Softmax.from_reference(mod, *output_parameters(mod))


class Sigmoid(nn.Sigmoid):
    """The logistic function of codes, whose results have a scale of their own."""

    def __init__(self, output_scale: float, output_zero_point: int) -> None:
        super().__init__()
        self.output_scale = output_scale
        self.output_zero_point = output_zero_point

    def forward(self, input: Any) -> Any:
        """The codes of the result."""
        return requantized(torch.sigmoid(input.dequantize()), input, self.output_scale, self.output_zero_point)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Sigmoid:
        """The activation of codes for a watched one of floats."""
        return cls(*output_parameters(mod))


class PReLU(nn.Module):
    """A leaky rectifier with learned slopes."""

    def __init__(self, output_scale: float, output_zero_point: int, num_parameters: int = 1) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.scale = output_scale
        self.zero_point = output_zero_point
        slopes = torch.randn(num_parameters, dtype=torch.float)
        self.weight = torch.quantize_per_tensor(slopes, scale=1.0, zero_point=0, dtype=torch.quint8)

    def set_weight(self, w: Any) -> None:
        """Take over the quantized slopes."""
        self.weight = w

    def forward(self, input: Any) -> Any:
        """The codes of the result."""
        return requantized(F.prelu(input.dequantize(), self.weight.dequantize()), input, self.scale, self.zero_point)

    _get_name = shown_as("Quantized{}")

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> PReLU:
        """The activation of codes for a watched one of floats."""
        made = cls(*output_parameters(mod), mod.num_parameters)
        watch = mod.qconfig.weight()
        watch(mod.weight.detach())
        scale, zero_point = watch.calculate_qparams()
        made.set_weight(
            torch.quantize_per_tensor(mod.weight.detach().float(), float(scale), int(zero_point), torch.quint8)
        )
        return made


class MultiheadAttention(activation.MultiheadAttention):
    """Quantizable attention after it was watched and converted."""

    _FLOAT_MODULE: Any = activation.MultiheadAttention

    _get_name = shown_as("Quantized{}")

    @classmethod
    def from_float(cls, other: Any) -> Any:
        """An error: the module is watched first."""
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed MHA module. Please, see the examples on "
            "quantizable MHAs."
        )

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The quantized module of one that was watched."""
        made = torch.ao.quantization.convert(other, mapping=None, inplace=False, remove_qconfig=True)
        made.__class__ = cls
        for name in ("bias_k", "bias_v"):
            bias = made._parameters.pop(name, None)
            if bias is not None:
                low, high = torch.aminmax(bias)
                eps = torch.tensor([torch.finfo(torch.float32).eps])
                scale, zero_point = torch.ao.quantization.utils.determine_qparams(
                    low, high, 0, 255, torch.quint8, eps, False
                )
                bias = torch.quantize_per_tensor(bias.detach(), float(scale), int(zero_point), torch.quint8)
            setattr(made, name, bias)
        return made
