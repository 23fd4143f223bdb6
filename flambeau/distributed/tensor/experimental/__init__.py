"""What is not settled of `torch.distributed.tensor`: not built yet."""

from __future__ import annotations

from ...._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("_attention")
    .absent(
        "distributed is not built yet",
        functions="implicit_replication context_parallel local_map register_sharding",
    )
    .parts()
)
