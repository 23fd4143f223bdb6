"""The older name of `torch.distributed.tensor`."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("experimental")
    .elsewhere("DTensor distribute_module distribute_tensor Partial Placement Replicate Shard", "distributed.tensor")
    .elsewhere("DeviceMesh init_device_mesh", "distributed")
    .parts()
)
