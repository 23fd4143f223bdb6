"""Optimizers of several processes, under the names of `torch.distributed.optim`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed is not built yet",
        classes="DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer",
    )
    .parts()
)
