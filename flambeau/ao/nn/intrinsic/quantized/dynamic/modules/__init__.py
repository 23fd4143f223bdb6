"""Layers with quantized weights for floats, with what follows them."""

from .linear_relu import LinearReLU

__all__ = ["LinearReLU"]
