"""The memory of an accelerator."""

from __future__ import annotations

from .._core.names.absent import Table
from ..cuda._missing import where_present
from . import NONE_AVAILABLE

__getattr__, __dir__ = where_present(
    "_accelerator",
    Table(__name__).raising(
        RuntimeError,
        NONE_AVAILABLE,
        functions="empty_cache empty_host_cache get_memory_info max_memory_allocated max_memory_reserved "
        "memory_allocated memory_reserved memory_stats reset_accumulated_memory_stats reset_peak_memory_stats",
    ),
)
