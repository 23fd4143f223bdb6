"""A linear layer and a rectifier, whose weight is rounded in training."""

from __future__ import annotations

from typing import Any

from flambeau.nn import functional as F

from ....qat.modules import linear
from ...modules import fused

__all__ = ["LinearReLU"]


class LinearReLU(linear.Linear):
    """A linear layer and a rectifier."""

    _FLOAT_MODULE: Any = fused.LinearReLU

    def forward(self, input: Any) -> Any:
        """The rectified linear map by the rounded weight."""
        return F.relu(super().forward(input))

    def to_float(self) -> Any:
        """Ordinary modules in a row."""
        import flambeau as torch

        return fused.LinearReLU(super().to_float(), torch.nn.ReLU())
