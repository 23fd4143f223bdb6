"""Processes that a launcher starts, under the names of `torch.distributed.elastic.multiprocessing`."""

from __future__ import annotations

from ...._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("errors")
    .absent(
        "`flambeau launch` starts processes and keeps what they write",
        functions="start_processes",
        classes="Std DefaultLogsSpecs",
    )
    .parts()
)
