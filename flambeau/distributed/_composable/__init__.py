"""The older name of functions that shard a model."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("fsdp")
    .elsewhere("fully_shard", "distributed.fsdp")
    .absent(
        "distributed: this part is not built",
        functions="checkpoint replicate",
    )
    .parts()
)
