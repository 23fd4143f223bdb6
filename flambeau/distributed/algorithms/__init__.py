"""Ways to exchange gradients, under the names of `torch.distributed.algorithms`."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("_checkpoint ddp_comm_hooks join model_averaging")
    .elsewhere("Join Joinable JoinHook", "distributed.algorithms.join")
    .parts()
)
