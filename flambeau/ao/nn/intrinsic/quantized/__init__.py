"""Modules of quantized tensors with what follows them, under the names of `torch.ao.nn.intrinsic.quantized`."""

from __future__ import annotations

from ....._core.names.absent import Table
from .modules import (
    BNReLU2d,
    BNReLU3d,
    ConvAdd2d,
    ConvAddReLU2d,
    ConvReLU1d,
    ConvReLU2d,
    ConvReLU3d,
    LinearLeakyReLU,
    LinearReLU,
    LinearTanh,
)

__all__ = [
    "BNReLU2d", "BNReLU3d", "ConvAdd2d", "ConvAddReLU2d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearLeakyReLU",
    "LinearReLU", "LinearTanh",
]  # fmt: skip
__getattr__, __dir__ = Table(__name__).submodules("dynamic").parts()
