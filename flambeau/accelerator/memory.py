"""The memory of an accelerator: there is none."""

from __future__ import annotations

from .._core.names.absent import Table
from . import NONE_AVAILABLE

__getattr__, __dir__ = (
    Table(__name__)
    .raising(
        RuntimeError,
        NONE_AVAILABLE,
        functions="empty_cache empty_host_cache get_memory_info max_memory_allocated max_memory_reserved "
        "memory_allocated memory_reserved memory_stats reset_accumulated_memory_stats reset_peak_memory_stats",
    )
    .parts()
)
