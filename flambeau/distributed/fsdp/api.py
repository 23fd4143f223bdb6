"""The settings of `FullyShardedDataParallel`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._core.dtype import dtype
from ...nn.modules.batchnorm import _BatchNorm
from ...nn.modules.module import Module
from .._kinds import BackwardPrefetch, OptimStateKeyType, ShardingStrategy, StateDictType

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "LocalOptimStateDictConfig",
    "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig", "OptimStateKeyType",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType",
]  # fmt: skip


@dataclass(frozen=True)
class MixedPrecision:
    """In which dtypes parameters are computed with, gradients added up, and buffers kept."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type[Module]] = (_BatchNorm,)


@dataclass
class CPUOffload:
    """Whether parameters rest in the memory of the host."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """How the state of a model is given."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Whole tensors, on every process or on the first alone."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """What this process has, as it is."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Spread tensors."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """How the state of an optimizer is given."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Whole tensors, on every process or on the first alone."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """What this process has, as it is."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Spread tensors."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """The form in which states are asked for."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
