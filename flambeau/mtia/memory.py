"""The memory of MTIA devices: there are none."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .returning(lambda: 0, functions="max_memory_allocated memory_allocated")
    .returning(dict, functions="memory_stats")
    .returning(lambda: None, functions="reset_peak_memory_stats")
    .parts()
)
