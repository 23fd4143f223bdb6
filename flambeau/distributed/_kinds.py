"""How parameters are sharded over processes: the choices that `torch.distributed.fsdp` has names for."""

from __future__ import annotations

import enum


class ShardingStrategy(enum.Enum):
    """What of a model is sharded over processes.

    Example:
        >>> dist.fsdp.ShardingStrategy.FULL_SHARD.name
        'FULL_SHARD'
    """

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class BackwardPrefetch(enum.Enum):
    """When the parameters of the next part are gathered.

    Example:
        >>> [each.name for each in dist.fsdp.BackwardPrefetch]
        ['BACKWARD_PRE', 'BACKWARD_POST']
    """

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


class StateDictType(enum.Enum):
    """In which form the state of a sharded model is asked for.

    Example:
        >>> [each.name for each in dist.fsdp.StateDictType]
        ['FULL_STATE_DICT', 'LOCAL_STATE_DICT', 'SHARDED_STATE_DICT']
    """

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


class OptimStateKeyType(enum.Enum):
    """By what the state of an optimizer is found.

    Example:
        >>> [each.name for each in dist.fsdp.OptimStateKeyType]
        ['PARAM_NAME', 'PARAM_ID']
    """

    PARAM_NAME = enum.auto()
    PARAM_ID = enum.auto()
