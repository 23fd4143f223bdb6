"""Collective operations of the CUDA devices of one process."""

from __future__ import annotations

from .._core.names.absent import Table
from ._missing import NEEDS_CUDA, where_present

__getattr__, __dir__ = where_present(
    "_nccl",
    Table(__name__)
    .raising(RuntimeError, NEEDS_CUDA, functions="all_gather all_reduce broadcast reduce reduce_scatter version")
    .returning(lambda: False, functions="is_available")
    .constant("SUM", 0),
)
