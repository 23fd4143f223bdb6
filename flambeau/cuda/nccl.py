"""Collective operations of CUDA devices: there are none."""

from __future__ import annotations

from .._core.names.absent import Table
from ._missing import NEEDS_CUDA

__getattr__, __dir__ = (
    Table(__name__)
    .raising(RuntimeError, NEEDS_CUDA, functions="all_gather all_reduce broadcast reduce reduce_scatter")
    .parts()
)
