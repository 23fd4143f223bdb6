"""Activations of quantized tensors whose results have scales of their own."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

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

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> ReLU6:
        """The activation of codes for a watched one of floats."""
        return ReLU6(mod.inplace)


class Hardswish(nn.Hardswish):
    """`x * relu6(x + 3) / 6`."""

    def __init__(self, scale: float, zero_point: int, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(scale))
        self.register_buffer("zero_point", torch.tensor(zero_point))

    def forward(self, input: Any) -> Any:
        """The codes of the result."""
        return requantized(F.hardswish(input.dequantize()), input, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedHardswish"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Hardswish:
        """The activation of codes for a watched one of floats."""
        return Hardswish(*output_parameters(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Hardswish:
        """The activation of codes whose results have a given scale."""
        return cls(float(scale), int(zero_point))


class ELU(nn.ELU):
    """`x` where it is positive, `alpha * (exp(x) - 1)` elsewhere."""

    def __init__(self, scale: float, zero_point: int, alpha: float = 1.0) -> None:
        super().__init__(alpha)
        self.scale = scale
        self.zero_point = zero_point

    def forward(self, input: Any) -> Any:
        """The codes of the result."""
        return requantized(F.elu(input.dequantize(), self.alpha), input, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedELU"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> ELU:
        """The activation of codes for a watched one of floats."""
        return ELU(*output_parameters(mod), mod.alpha)

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> ELU:
        """The activation of codes whose results have a given scale."""
        return cls(float(scale), int(zero_point), mod.alpha)


class LeakyReLU(nn.LeakyReLU):
    """`x` where it is positive, `negative_slope * x` elsewhere."""

    def __init__(
        self,
        scale: float,
        zero_point: int,
        negative_slope: float = 1e-2,
        inplace: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(negative_slope, inplace)
        self.register_buffer("scale", torch.tensor(scale))
        self.register_buffer("zero_point", torch.tensor(zero_point))

    def forward(self, input: Any) -> Any:
        """The codes of the result."""
        result = F.leaky_relu(input.dequantize(), self.negative_slope)
        return requantized(result, input, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedLeakyReLU"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> LeakyReLU:
        """The activation of codes for a watched one of floats."""
        return cls(*output_parameters(mod), mod.negative_slope, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> LeakyReLU:
        """The activation of codes whose results have a given scale."""
        return cls(float(scale), int(zero_point), mod.negative_slope, mod.inplace)


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


class Softmax(nn.Softmax):
    """Exponentials that add up to one along a dimension."""

    def __init__(self, dim: int | None = None, scale: float = 1.0, zero_point: int = 0) -> None:
        super().__init__(dim)
        self.scale = scale
        self.zero_point = zero_point

    def forward(self, input: Any) -> Any:
        """The codes of the result."""
        dim = self.dim if self.dim is not None else (0 if input.dim() in (0, 1, 3) else 1)
        return requantized(torch.softmax(input.dequantize(), dim), input, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedSoftmax"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Softmax:
        """The activation of codes for a watched one of floats."""
        return Softmax(mod.dim, *output_parameters(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Softmax:
        """The activation of codes whose results have a given scale."""
        return cls(mod.dim, float(scale), int(zero_point))


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

    def _get_name(self) -> str:
        return "QuantizedPReLU"

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

    def _get_name(self) -> str:
        return "QuantizedMultiheadAttention"

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
