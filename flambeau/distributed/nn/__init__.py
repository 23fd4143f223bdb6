"""Collectives with derivatives, under the names of `torch.distributed.nn`."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("functional")
    .elsewhere(
        "all_gather all_reduce all_to_all all_to_all_single broadcast gather reduce reduce_scatter scatter",
        "distributed.nn.functional",
    )
    .absent("it needs calls in other processes (rpc), which Flambeau does not have", classes="RemoteModule")
    .parts()
)
