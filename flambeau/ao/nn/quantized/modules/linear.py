"""A linear layer of quantized tensors."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn

from ....._ops.quantized.layers import quantized_layer
from ...._constructors import shown_as
from .utils import WeightedQuantizedModule, output_parameters, quantized_weight

__all__ = ["Linear", "LinearPackedParams"]


class LinearPackedParams(nn.Module):
    """The weight and the bias of a layer, as its kernels want them."""

    _version = 3

    def __init__(self, dtype: Any = torch.qint8) -> None:
        super().__init__()
        self.dtype = dtype
        weight = torch._empty_affine_quantized([1, 1], scale=1.0, zero_point=0, dtype=torch.qint8)
        self.set_weight_bias(weight if dtype is torch.qint8 else torch.zeros(1, 1), None)

    def set_weight_bias(self, weight: Any, bias: Any) -> None:
        """Take over a weight and a bias."""
        self._packed_params = (weight, bias)

    def _weight_bias(self) -> tuple[Any, Any]:
        return self._packed_params

    def forward(self, x: Any) -> Any:
        """The tensor itself."""
        return x

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *further: Any) -> None:
        self.dtype = state_dict.pop(prefix + "dtype")
        self.set_weight_bias(*state_dict.pop(prefix + "_packed_params"))
        super()._load_from_state_dict(state_dict, prefix, *further)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


class Linear(WeightedQuantizedModule):
    """`x @ weight.T + bias` of codes; the result has a scale and a zero point of its own."""

    _FLOAT_MODULE: Any = (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear)
    _relu = False

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = torch.qint8) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        if dtype not in (torch.qint8, torch.float16):
            raise RuntimeError("Unsupported dtype specified for quantized Linear!")
        bias = torch.zeros(out_features, dtype=torch.float) if bias_ else None
        shape = [out_features, in_features]
        self._packed_params = LinearPackedParams(dtype)
        if dtype is torch.qint8:
            weight = torch._empty_affine_quantized(shape, scale=1, zero_point=0, dtype=torch.qint8)
        else:
            weight = torch.zeros(shape, dtype=torch.float)
        self._packed_params.set_weight_bias(weight, bias)
        self.scale = 1.0
        self.zero_point = 0

    _get_name = shown_as("Quantized{}")

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"  # without the part that holds the weight

    def extra_repr(self) -> str:
        """Sizes, scale and scheme."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, "
            f"zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def forward(self, x: Any) -> Any:
        """The codes of the result."""
        weight, bias = self._packed_params._weight_bias()
        return quantized_layer(
            nn.functional.linear, x, weight, bias, self.scale, self.zero_point, channel=-1, relu=self._relu
        )

    def weight(self) -> Any:
        """The quantized weight."""
        return self._packed_params._weight_bias()[0]

    def bias(self) -> Any:
        """The bias, in floats."""
        return self._packed_params._weight_bias()[1]

    def set_weight_bias(self, w: Any, b: Any) -> None:
        """Take over a quantized weight and a bias."""
        self._packed_params.set_weight_bias(w, b)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        nn.Module._save_to_state_dict(self, destination, prefix, keep_vars)
        destination[prefix + "scale"] = torch.tensor(self.scale)
        destination[prefix + "zero_point"] = torch.tensor(self.zero_point)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantized layer for one of floats that was watched, or trained with rounding."""
        layer = mod if isinstance(mod, nn.Linear) else mod[0]
        if not hasattr(mod, "qconfig") and not hasattr(mod, "weight_fake_quant"):
            raise AssertionError("Input float module must have qconfig defined")
        watch = getattr(mod, "weight_fake_quant", None) or mod.qconfig.weight()
        made = cls(layer.in_features, layer.out_features)
        made.set_weight_bias(quantized_weight(layer, watch), _plain(layer.bias))
        made.scale, made.zero_point = output_parameters(mod)
        return made

    @classmethod
    def from_reference(cls, ref_qlinear: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The quantized layer for one that computes with floats as codes would."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), _plain(ref_qlinear.bias))
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


def _plain(bias: Any) -> Any:
    return None if bias is None else bias.detach().float()
