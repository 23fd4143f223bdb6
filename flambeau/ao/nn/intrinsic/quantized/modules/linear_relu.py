"""Linear layers of quantized tensors with what follows them."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau.nn import functional as F

from ....quantized.modules import linear
from ....quantized.modules.utils import requantized

__all__ = ["LinearLeakyReLU", "LinearReLU", "LinearTanh"]


class LinearReLU(linear.Linear):
    """A linear layer and a rectifier."""

    _relu = True

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = torch.qint8) -> None:
        super().__init__(in_features, out_features, bias, dtype)

    @classmethod
    def from_reference(cls, ref_linear_relu: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The quantized layer for a linear layer and a rectifier that compute with floats."""
        return super().from_reference(ref_linear_relu[0], output_scale, output_zero_point)


class _Followed(linear.Linear):
    """A linear layer and a function, of floats, before the only rounding."""

    def _function(self, result: Any) -> Any:
        raise NotImplementedError

    def forward(self, x: Any) -> Any:
        """The codes of the result."""
        result = F.linear(x.dequantize(), self.weight().dequantize(), self.bias())
        return requantized(self._function(result), x, self.scale, self.zero_point)


class LinearLeakyReLU(_Followed):
    """A linear layer and a leaky rectifier."""

    def __init__(
        self, in_features: int, out_features: int, negative_slope: float, bias: bool = True, dtype: Any = torch.qint8
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)
        self.negative_slope = negative_slope

    def _function(self, result: Any) -> Any:
        return F.leaky_relu(result, self.negative_slope)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantized layer for modules in a row that were watched."""
        plain = linear.Linear.from_float(mod)
        made = cls(plain.in_features, plain.out_features, mod[1].negative_slope)
        made.set_weight_bias(plain.weight(), plain.bias())
        made.scale, made.zero_point = plain.scale, plain.zero_point
        return made

    @classmethod
    def from_reference(cls, ref_mod: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The quantized layer for a linear layer and a leaky rectifier that compute with floats."""
        plain = linear.Linear.from_reference(ref_mod[0], output_scale, output_zero_point)
        made = cls(plain.in_features, plain.out_features, ref_mod[1].negative_slope)
        made.set_weight_bias(plain.weight(), plain.bias())
        made.scale, made.zero_point = plain.scale, plain.zero_point
        return made


class LinearTanh(_Followed):
    """A linear layer and a hyperbolic tangent."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = torch.qint8) -> None:
        super().__init__(in_features, out_features, bias, dtype)

    @classmethod
    def from_reference(cls, ref_mod: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The quantized layer for a linear layer and a hyperbolic tangent that compute with floats."""
        return super().from_reference(ref_mod[0], output_scale, output_zero_point)

    def _function(self, result: Any) -> Any:
        return torch.tanh(result)
