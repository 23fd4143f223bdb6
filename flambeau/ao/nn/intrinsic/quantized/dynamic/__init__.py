"""Layers with quantized weights for floats, with what follows them."""

from .modules import LinearReLU

__all__ = ["LinearReLU"]
