"""Layers that round their inputs to 8-bit integers as these come: `torch.ao.nn.quantized.dynamic`."""

from __future__ import annotations

from typing import Any

from ....._core.dtype import NAMES
from ....._core.tensor import Tensor
from ....._ops.create.constants import zeros
from ....._ops.quantized.packed import _weight_int8pack_mm
from .....nn.modules.module import Module

_SMALLEST_SCALE = 1.1920928955078125e-07
_MOST = 127
"""Inputs have 7 bits: products of two 8-bit numbers are added in pairs of 16 bits by the processors that PyTorch's
kernels are for, and this layer rounds as they do."""


def rounded_inputs(x: Tensor) -> tuple[Tensor, float]:
    """The inputs as multiples of a scale, so that the least and the largest fit into 7 bits; and that scale."""
    low = min(float(x.min().item()), 0.0) if x.numel() else 0.0
    high = max(float(x.max().item()), 0.0) if x.numel() else 0.0
    scale = (high - low) / _MOST or 0.1
    from_low, from_high = -low / scale, _MOST - high / scale
    zero = round(from_low if abs(low / scale) < _MOST + abs(high / scale) else from_high)
    zero = max(0, min(zero, _MOST))
    codes = (x * (1.0 / scale)).add_(zero).round_().clamp_(0, 255)
    return codes.sub_(zero), scale


class Linear(Module):
    """A linear layer with weights of 8 bits, and inputs that are rounded to as many when they come."""

    codes: Tensor
    scale: Tensor
    offset: Tensor

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = NAMES["qint8"]) -> None:
        super().__init__()
        if dtype is not NAMES["qint8"]:
            raise RuntimeError(f"Unsupported dtype specified for dynamic quantized Linear: {dtype}; there is qint8")
        self.in_features, self.out_features = in_features, out_features
        self._has_bias = bias_
        self.register_buffer("codes", zeros(out_features, in_features, dtype=NAMES["int8"]))
        self.register_buffer("scale", zeros(()))
        self.register_buffer("offset", zeros(out_features))

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Linear:
        """The layer in place of one with weights of 32 bits."""
        layer = cls(mod.in_features, mod.out_features, mod.bias is not None)
        weight = mod.weight.detach()
        scale = max(float(weight.abs().max().item()) / 127.5, _SMALLEST_SCALE)
        layer.scale.fill_(scale)
        layer.codes.copy_((weight / scale).round_().clamp_(-128, 127))
        if mod.bias is not None:
            layer.offset.copy_(mod.bias.detach())
        return layer.train(mod.training)

    def weight(self) -> Tensor:
        """The weight as the layer computes with it."""
        return self.codes.float() * self.scale

    def bias(self) -> Tensor | None:
        """The bias."""
        return self.offset if self._has_bias else None

    def forward(self, x: Tensor) -> Tensor:
        """`x @ weight.T + bias`, of rounded inputs."""
        codes, scale = rounded_inputs(x.detach().float())
        flat = codes.reshape(-1, self.in_features)
        product = _weight_int8pack_mm(flat, self.codes, (self.scale * scale).expand(self.out_features).contiguous())
        return (product + self.offset).reshape(*x.shape[:-1], self.out_features)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        """What the layer's line in a printed module says."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, dtype=torch.qint8, "
            "qscheme=torch.per_tensor_affine"
        )
