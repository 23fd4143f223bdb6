"""Parameters spread over processes, under the names of `torch.distributed.fsdp`: not built yet."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("api fully_sharded_data_parallel sharded_grad_scaler wrap")
    .elsewhere("BackwardPrefetch OptimStateKeyType ShardingStrategy StateDictType", "distributed._kinds")
    .absent(
        "distributed is not built yet",
        functions="fully_shard register_fsdp_forward_method",
        classes="CPUOffload CPUOffloadPolicy FSDPModule FullOptimStateDictConfig FullStateDictConfig "
        "FullyShardedDataParallel LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision MixedPrecisionPolicy "
        "OffloadPolicy ShardedOptimStateDictConfig ShardedStateDictConfig "
        "StateDictSettings UnshardHandle",
    )
    .parts()
)
