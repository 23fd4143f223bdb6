"""Attention over several processes: not built yet."""

from __future__ import annotations

from ...._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed: this part is not built",
        functions="context_parallel set_rotate_method context_parallel_unshard",
    )
    .parts()
)
