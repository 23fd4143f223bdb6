"""Starting such processes: not built yet."""

from __future__ import annotations

from ...._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("errors")
    .absent(
        "distributed is not built yet",
        functions="start_processes",
        classes="Std DefaultLogsSpecs",
    )
    .parts()
)
