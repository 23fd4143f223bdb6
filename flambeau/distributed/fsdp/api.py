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
    """In which dtypes parameters are computed with, gradients added up, and buffers kept.

    Args:
        param_dtype (dtype, optional): the dtype in which parameters are computed with; None keeps theirs.
        reduce_dtype (dtype, optional): the dtype in which gradients are added up; None takes that of the computation.
        buffer_dtype (dtype, optional): the dtype of buffers; None keeps theirs.
        keep_low_precision_grads (bool): whether gradients keep the dtype of the computation. Default: `False`.
        cast_forward_inputs (bool): whether floating-point inputs are cast too. Default: `False`.
        cast_root_forward_inputs (bool): whether inputs of the outermost module are cast. Default: `True`.

    Example:
        >>> dist.fsdp.MixedPrecision(param_dtype=torch.bfloat16).param_dtype
        torch.bfloat16
    """

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type[Module]] = (_BatchNorm,)


@dataclass
class CPUOffload:
    """Whether parameters rest in the memory of the host.

    Args:
        offload_params (bool): whether they do. Default: `False`.

    Example:
        >>> dist.fsdp.CPUOffload(offload_params=True)
        CPUOffload(offload_params=True)
    """

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """How the state of a model is given.

    Args:
        offload_to_cpu (bool): whether tensors are moved to the host's memory. Default: `False`.

    Example:
        >>> dist.fsdp.StateDictConfig()
        StateDictConfig(offload_to_cpu=False)
    """

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Whole tensors, on every process or on the first alone.

    Args:
        offload_to_cpu (bool): whether tensors are moved to the host's memory. Default: `False`.
        rank0_only (bool): whether only the first process gets them. Default: `False`.

    Example:
        >>> dist.fsdp.FullStateDictConfig(rank0_only=True)
        FullStateDictConfig(offload_to_cpu=False, rank0_only=True)
    """

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """What this process has, as it is.

    Args:
        offload_to_cpu (bool): whether tensors are moved to the host's memory. Default: `False`.

    Example:
        >>> dist.fsdp.LocalStateDictConfig()
        LocalStateDictConfig(offload_to_cpu=False)
    """


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Distributed tensors.

    Args:
        offload_to_cpu (bool): whether tensors are moved to the host's memory. Default: `False`.

    Example:
        >>> dist.fsdp.ShardedStateDictConfig().offload_to_cpu
        False
    """

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """How the state of an optimizer is given.

    Args:
        offload_to_cpu (bool): whether tensors are moved to the host's memory. Default: `True`.

    Example:
        >>> dist.fsdp.OptimStateDictConfig()
        OptimStateDictConfig(offload_to_cpu=True)
    """

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Whole tensors, on every process or on the first alone.

    Args:
        offload_to_cpu (bool): whether tensors are moved to the host's memory. Default: `True`.
        rank0_only (bool): whether only the first process gets them. Default: `False`.

    Example:
        >>> dist.fsdp.FullOptimStateDictConfig(rank0_only=True)
        FullOptimStateDictConfig(offload_to_cpu=True, rank0_only=True)
    """

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """What this process has, as it is.

    Args:
        offload_to_cpu (bool): whether tensors are moved to the host's memory. Default: `False`.

    Example:
        >>> dist.fsdp.LocalOptimStateDictConfig()
        LocalOptimStateDictConfig(offload_to_cpu=False)
    """

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Distributed tensors.

    Args:
        offload_to_cpu (bool): whether tensors are moved to the host's memory. Default: `True`.

    Example:
        >>> dist.fsdp.ShardedOptimStateDictConfig().offload_to_cpu
        True
    """

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """The form in which states are asked for.

    Args:
        state_dict_type (StateDictType): the form.
        state_dict_config (StateDictConfig): how the state of the model is given.
        optim_state_dict_config (OptimStateDictConfig): how the state of the optimizer is given.

    Example:
        >>> form = dist.fsdp.StateDictType.FULL_STATE_DICT
        >>> configs = dist.fsdp.FullStateDictConfig(), dist.fsdp.FullOptimStateDictConfig()
        >>> dist.fsdp.StateDictSettings(form, *configs).state_dict_type.name
        'FULL_STATE_DICT'
    """

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
