"""The settings of `FullyShardedDataParallel`."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere(
        "BackwardPrefetch CPUOffload FullOptimStateDictConfig FullStateDictConfig "
        "LocalOptimStateDictConfig LocalStateDictConfig",
        "distributed.fsdp",
    )
    .elsewhere(
        "MixedPrecision OptimStateKeyType ShardedOptimStateDictConfig ShardedStateDictConfig "
        "ShardingStrategy StateDictSettings StateDictType",
        "distributed.fsdp",
    )
    .parts()
)
