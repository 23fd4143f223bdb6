"""Moving tensors between CUDA devices."""

from __future__ import annotations

from .._core.names.absent import Table
from ._missing import NEEDS_CUDA, where_present

__getattr__, __dir__ = where_present(
    "_comm",
    Table(__name__).raising(
        RuntimeError,
        NEEDS_CUDA,
        functions="broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter",
    ),
)
