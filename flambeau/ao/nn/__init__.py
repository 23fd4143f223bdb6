"""Modules of quantized tensors, and those that lead to them, under the names of `torch.ao.nn`."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).submodules("intrinsic qat quantizable quantized sparse").parts()
