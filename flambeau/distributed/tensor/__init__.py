"""Tensors distributed over processes, under the names of `torch.distributed.tensor`."""

from __future__ import annotations

from ..._core.names.absent import Table

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full",
    "ones", "rand", "randn", "zeros",
]  # fmt: skip

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("device_mesh experimental parallel placement_types _utils")
    .elsewhere("Partial Placement Replicate Shard", "distributed.tensor.placement_types")
    .elsewhere("DTensor", "distributed.tensor._dtensor")
    .elsewhere(
        "distribute_module distribute_tensor empty full ones rand randn zeros",
        "distributed.tensor._api",
    )
    .parts()
)
