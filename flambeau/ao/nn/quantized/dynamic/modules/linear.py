"""A linear layer with a quantized weight, for floats that are quantized as they come."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

from ......_ops.quantized.dispatch import code_tensor
from ......_ops.quantized.layers import dynamic_layer, rounded_input
from ....._constructors import shown_as
from ...modules import linear
from ...modules.utils import quantize_weight

__all__ = ["Linear"]


class Linear(linear.Linear):
    """`x @ weight.T + bias` with a weight of codes, or of float16."""

    _get_name = shown_as("DynamicQuantized{}")

    def extra_repr(self) -> str:
        """Sizes, dtype and scheme."""
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        return f"{text}, qscheme={self.weight().qscheme()}" if self._packed_params.dtype is torch.qint8 else text

    def forward(self, x: Any) -> Any:
        """The floats of the result."""
        weight, bias = self._packed_params._weight_bias()
        if self._packed_params.dtype is torch.float16:
            result = F.linear(x, weight, bias)
            return F.relu(result) if self._relu else result
        if weight._quantizer.per_channel or weight.q_zero_point():
            return dynamic_layer(F.linear, x, weight, bias, channel=-1, relu=self._relu)
        codes, scale = rounded_input(x)
        factors = torch.full((self.out_features,), scale * weight.q_scale())
        result = torch._weight_int8pack_mm(codes.reshape(-1, self.in_features), code_tensor(weight), factors)
        result = (result if bias is None else result + bias).reshape(*x.shape[:-1], self.out_features)
        return F.relu(result) if self._relu else result

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer with a quantized weight for one of floats."""
        layer = mod if isinstance(mod, nn.Linear) else mod[0]
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        watch = mod.qconfig.weight() if getattr(mod, "qconfig", None) else None
        if watch is None:
            from flambeau.ao.quantization.qconfig import default_dynamic_qconfig

            watch = default_dynamic_qconfig.weight()
        weight = layer.weight.detach().float()
        if watch.dtype is torch.qint8:
            watch(layer.weight)
            weight = quantize_weight(weight, watch)
        elif watch.dtype is torch.float16:
            weight = weight.half().float()
        else:
            raise RuntimeError("Unsupported dtype specified for dynamic quantized Linear!")
        made = cls(layer.in_features, layer.out_features, dtype=watch.dtype)
        made.set_weight_bias(weight, linear._plain(layer.bias))
        return made

    @classmethod
    def from_reference(cls, ref_qlinear: Any, *further: Any) -> Any:
        """The dynamically quantized layer for one that computes with floats as codes would."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features, dtype=ref_qlinear.weight_dtype)
        half = ref_qlinear.weight_dtype is torch.float16
        weight = ref_qlinear.weight.detach().half().float() if half else ref_qlinear.get_quantized_weight()
        made.set_weight_bias(weight, linear._plain(ref_qlinear.bias))
        return made
