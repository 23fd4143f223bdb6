"""Batch norms of quantized tensors with a rectifier."""

from __future__ import annotations

from typing import Any

from ....quantized.modules import batchnorm

__all__ = ["BNReLU2d", "BNReLU3d"]


class BNReLU2d(batchnorm.BatchNorm2d):
    """A batch norm of images and a rectifier."""

    _relu = True

    @classmethod
    def from_reference(cls, bn_relu: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The quantized norm, with a given scale, for a norm and a rectifier of floats."""
        return super().from_reference(bn_relu[0], output_scale, output_zero_point)


class BNReLU3d(batchnorm.BatchNorm3d):
    """A batch norm of volumes and a rectifier."""

    _relu = True

    @classmethod
    def from_reference(cls, bn_relu: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The quantized norm, with a given scale, for a norm and a rectifier of floats."""
        return super().from_reference(bn_relu[0], output_scale, output_zero_point)
