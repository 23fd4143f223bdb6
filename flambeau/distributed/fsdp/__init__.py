"""Parameters spread over processes, under the names of `torch.distributed.fsdp`: not built yet."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed is not built yet",
        functions="fully_shard register_fsdp_forward_method",
        classes="BackwardPrefetch CPUOffload CPUOffloadPolicy FSDPModule FullOptimStateDictConfig FullStateDictConfig "
        "FullyShardedDataParallel LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision MixedPrecisionPolicy "
        "OffloadPolicy OptimStateKeyType ShardedOptimStateDictConfig ShardedStateDictConfig ShardingStrategy "
        "StateDictSettings StateDictType UnshardHandle",
    )
    .parts()
)
