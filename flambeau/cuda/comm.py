"""Moving tensors between CUDA devices: there are none."""

from __future__ import annotations

from .._core.names.absent import Table
from ._missing import NEEDS_CUDA

__getattr__, __dir__ = (
    Table(__name__)
    .raising(
        RuntimeError,
        NEEDS_CUDA,
        functions="broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter",
    )
    .parts()
)
