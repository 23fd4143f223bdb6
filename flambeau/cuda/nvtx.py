"""Marks for NVIDIA's profilers."""

from __future__ import annotations

from .._core.names.absent import Table
from ._missing import NEEDS_CUDA, where_present

__getattr__, __dir__ = where_present(
    "_nvtx",
    Table(__name__).raising(
        RuntimeError, NEEDS_CUDA, functions="mark range range_end range_pop range_push range_start"
    ),
)
