"""Modules of quantized tensors, under the names of `torch.ao.nn.quantized`."""

from __future__ import annotations

from ...._core.names.absent import Table
from . import modules
from .modules import *  # noqa: F403
from .weight_only import WeightOnlyLinear

__all__ = ["WeightOnlyLinear"]
__all__ += modules.__all__
__getattr__, __dir__ = Table(__name__).submodules("dynamic functional reference").parts()
