"""A linear layer with a quantized weight for floats, and a rectifier."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from .....quantized.dynamic.modules import linear

__all__ = ["LinearReLU"]


class LinearReLU(linear.Linear):
    """A linear layer and a rectifier."""

    _relu = True

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = torch.qint8) -> None:
        super().__init__(in_features, out_features, bias, dtype)

    @classmethod
    def from_reference(cls, ref_qlinear_relu: Any, *further: Any) -> Any:
        """The dynamically quantized layer for a linear layer and a rectifier that compute with floats."""
        return super().from_reference(ref_qlinear_relu[0])
