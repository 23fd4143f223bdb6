"""Launching of processes, under the names of `torch.distributed.launcher`: not built yet."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__).submodules("api").elsewhere("LaunchConfig elastic_launch", "distributed.launcher.api").parts()
)
