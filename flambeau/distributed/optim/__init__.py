"""Optimizers of several processes, under the names of `torch.distributed.optim`."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("ZeroRedundancyOptimizer", "distributed.optim.zero_redundancy_optimizer")
    .elsewhere("PostLocalSGDOptimizer", "distributed.optim.post_localSGD_optimizer")
    .elsewhere(
        "_apply_optimizer_in_backward _get_in_backward_optimizers", "distributed.optim.apply_optimizer_in_backward"
    )
    .submodules("apply_optimizer_in_backward post_localSGD_optimizer zero_redundancy_optimizer")
    .absent("it needs calls in other processes (rpc), which Flambeau does not have", classes="DistributedOptimizer")
    .parts()
)
