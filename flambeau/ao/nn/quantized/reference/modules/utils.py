"""What modules share that compute with floats as quantized ones will."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn

__all__ = ["ReferenceQuantizedModule"]


class ReferenceQuantizedModule(nn.Module):
    """A module whose weight is rounded to codes at each use, by the scale that it was made with."""

    _IS_REFERENCE = True
    weight: Any

    def _init_weight_qparams(self, weight_qparams: dict[str, Any] | None, device: Any = None) -> None:
        given = weight_qparams or {"qscheme": torch.per_tensor_affine, "dtype": torch.quint8, "scale": 1.0, "zero_point": 0}  # noqa: E501  # fmt: skip
        self.weight_qscheme = given["qscheme"]
        self.weight_dtype = given["dtype"]
        if self.weight_qscheme is not None:
            self.register_buffer("weight_scale", torch.as_tensor(given["scale"], dtype=torch.float).detach().clone())
            zero_point = torch.as_tensor(given["zero_point"]).detach().clone()
            self.register_buffer("weight_zero_point", zero_point)
            self.weight_axis_int = int(given.get("axis", 0))

    def get_quantized_weight(self) -> Any:
        """The weight as codes."""
        own: Any = self
        weight = self.weight.detach()
        if "per_tensor" in str(self.weight_qscheme):
            scale, zero_point = float(own.weight_scale), int(own.weight_zero_point)
            return torch.quantize_per_tensor(weight, scale, zero_point, self.weight_dtype)
        return torch.quantize_per_channel(
            weight, own.weight_scale, own.weight_zero_point, self.weight_axis_int, self.weight_dtype
        )

    def get_weight(self) -> Any:
        """The weight that its codes stand for."""
        if self.weight_qscheme is None:
            return self.weight
        return self.get_quantized_weight().dequantize()
