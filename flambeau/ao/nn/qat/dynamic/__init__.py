"""Modules for training models whose inputs are quantized as they come."""

from .modules import Linear

__all__ = ["Linear"]
