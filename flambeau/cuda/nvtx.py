"""Marks for NVIDIA's profilers: without a CUDA device there are none."""

from __future__ import annotations

from .._core.names.absent import Table
from ._missing import NEEDS_CUDA

__getattr__, __dir__ = (
    Table(__name__)
    .raising(RuntimeError, NEEDS_CUDA, functions="mark range range_end range_pop range_push range_start")
    .parts()
)
