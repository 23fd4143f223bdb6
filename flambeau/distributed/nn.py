"""Collectives with derivatives, under the names of `torch.distributed.nn`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed is not built yet",
        functions="all_gather all_reduce all_to_all all_to_all_single broadcast gather reduce reduce_scatter scatter",
        classes="RemoteModule",
    )
    .parts()
)
