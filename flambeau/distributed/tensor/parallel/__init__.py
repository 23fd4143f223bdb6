"""Layers distributed over processes, under the names of `torch.distributed.tensor.parallel`."""

from __future__ import annotations

from ...._core.names.absent import Table

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel", "loss_parallel", "parallelize_module",
]  # fmt: skip

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("api loss style")
    .elsewhere("parallelize_module", "distributed.tensor.parallel.api")
    .elsewhere("loss_parallel", "distributed.tensor.parallel.loss")
    .elsewhere(
        "ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput RowwiseParallel "
        "SequenceParallel",
        "distributed.tensor.parallel.style",
    )
    .parts()
)
