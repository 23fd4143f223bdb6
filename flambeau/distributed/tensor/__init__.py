"""Tensors spread over processes, under the names of `torch.distributed.tensor`: not built yet."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("experimental parallel placement_types _utils")
    .elsewhere("Partial Placement Replicate Shard", "distributed.tensor.placement_types")
    .absent(
        "distributed is not built yet",
        functions="distribute_module distribute_tensor empty full ones rand randn zeros",
        classes="DTensor",
    )
    .parts()
)
