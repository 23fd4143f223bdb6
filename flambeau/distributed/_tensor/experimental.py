"""What is not settled of `torch.distributed.tensor`."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("implicit_replication local_map", "distributed.tensor.experimental")
    .absent(
        "distributed: this part is not built",
        functions="context_parallel register_sharding",
    )
    .parts()
)
