"""Batch norms of quantized tensors with a rectifier."""

from __future__ import annotations

from ....quantized.modules import batchnorm

__all__ = ["BNReLU2d", "BNReLU3d"]


class BNReLU2d(batchnorm.BatchNorm2d):
    """A batch norm of images and a rectifier."""

    _relu = True


class BNReLU3d(batchnorm.BatchNorm3d):
    """A batch norm of volumes and a rectifier."""

    _relu = True
