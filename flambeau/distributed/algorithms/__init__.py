"""Ways to exchange gradients, under the names of `torch.distributed.algorithms`: not built yet."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("ddp_comm_hooks model_averaging")
    .absent(
        "distributed is not built yet",
        classes="Join Joinable JoinHook",
    )
    .parts()
)
