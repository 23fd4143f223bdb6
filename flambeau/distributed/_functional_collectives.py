"""Collectives as functions: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed is not built yet",
        functions="all_gather_tensor all_reduce all_to_all_single all_to_all_single_autograd broadcast "
        "reduce_scatter_tensor permute_tensor wait_tensor",
        classes="AsyncCollectiveTensor",
    )
    .parts()
)
