"""Modules whose weights are rounded in training, under the names of `torch.ao.nn.qat`."""

from __future__ import annotations

from ...._core.names.absent import Table
from .modules import Conv1d, Conv2d, Conv3d, Embedding, EmbeddingBag, Linear

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]
__getattr__, __dir__ = Table(__name__).submodules("dynamic").parts()
