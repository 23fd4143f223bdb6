"""The older name of `torch.distributed.fsdp`'s functions."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere(
        "CPUOffloadPolicy FSDPModule MixedPrecisionPolicy OffloadPolicy fully_shard register_fsdp_forward_method",
        "distributed.fsdp",
    )
    .parts()
)
