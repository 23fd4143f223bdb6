"""How tensors are spread, under the names of `torch.distributed.tensor.placement_types`: not built yet."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent("distributed is not built yet", classes="Partial Placement Replicate Shard _StridedShard")
    .parts()
)
