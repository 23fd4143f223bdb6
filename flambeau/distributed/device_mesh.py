"""`torch.distributed.device_mesh`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).elsewhere("DeviceMesh init_device_mesh", "distributed").parts()
