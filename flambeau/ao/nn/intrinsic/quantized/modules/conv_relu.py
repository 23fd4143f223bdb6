"""Convolutions of quantized tensors with a rectifier."""

from __future__ import annotations

from ....quantized.modules import conv

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d"]


class ConvReLU1d(conv.Conv1d):
    """A convolution in one dimension and a rectifier."""

    _relu = True


class ConvReLU2d(conv.Conv2d):
    """A convolution in two dimensions and a rectifier."""

    _relu = True


class ConvReLU3d(conv.Conv3d):
    """A convolution in three dimensions and a rectifier."""

    _relu = True
