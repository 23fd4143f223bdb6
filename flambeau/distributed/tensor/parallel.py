"""Layers spread over processes, under the names of `torch.distributed.tensor.parallel`: not built yet."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed is not built yet",
        functions="loss_parallel parallelize_module",
        classes="ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput "
        "RowwiseParallel SequenceParallel",
    )
    .parts()
)
