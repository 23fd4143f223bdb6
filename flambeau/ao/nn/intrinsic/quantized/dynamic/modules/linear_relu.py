"""A linear layer with a quantized weight for floats, and a rectifier."""

from __future__ import annotations

from .....quantized.dynamic.modules import linear

__all__ = ["LinearReLU"]


class LinearReLU(linear.Linear):
    """A linear layer and a rectifier."""

    _relu = True

    def _get_name(self) -> str:
        return "DynamicQuantizedLinearReLU"
