"""Modules that are one module for what quantizes, under the names of `torch.ao.nn.intrinsic`."""

from __future__ import annotations

from ...._core.names.absent import Table
from .modules import *  # noqa: F403
from .modules import __all__ as __all__

__getattr__, __dir__ = Table(__name__).submodules("qat quantized").parts()
