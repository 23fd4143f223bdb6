"""Parameters sharded over processes, under the names of `torch.distributed.fsdp`."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("api fully_sharded_data_parallel sharded_grad_scaler wrap")
    .elsewhere("BackwardPrefetch OptimStateKeyType ShardingStrategy StateDictType", "distributed._kinds")
    .elsewhere("CPUOffloadPolicy MixedPrecisionPolicy OffloadPolicy", "distributed.fsdp._policies")
    .elsewhere("FSDPModule UnshardHandle fully_shard register_fsdp_forward_method", "distributed.fsdp._fully_shard")
    .elsewhere(
        "CPUOffload FullOptimStateDictConfig FullStateDictConfig LocalOptimStateDictConfig LocalStateDictConfig "
        "MixedPrecision OptimStateDictConfig ShardedOptimStateDictConfig ShardedStateDictConfig StateDictConfig "
        "StateDictSettings",
        "distributed.fsdp.api",
    )
    .elsewhere("FullyShardedDataParallel", "distributed.fsdp.fully_sharded_data_parallel")
    .parts()
)
