"""Quantization of models, under the names of `torch.ao`."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).submodules("nn ns pruning quantization").parts()
