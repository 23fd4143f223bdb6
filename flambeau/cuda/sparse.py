"""Sparse tensor types of CUDA devices: there are none."""

from __future__ import annotations

from .._core.names.absent import Table
from ._missing import TENSORS

__getattr__, __dir__ = (
    Table(__name__)
    .raising(
        TypeError, "type torch.cuda.sparse.{name} not available. Torch not compiled with CUDA enabled.", classes=TENSORS
    )
    .parts()
)
