"""`torch.distributed.device_mesh`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent("meshes of processes are not built yet", functions="init_device_mesh", classes="DeviceMesh")
    .parts()
)
