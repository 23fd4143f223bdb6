"""How parameters are spread over processes: the choices that `torch.distributed.fsdp` has names for."""

from __future__ import annotations

import enum


class ShardingStrategy(enum.Enum):
    """What of a model is spread over processes."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class BackwardPrefetch(enum.Enum):
    """When the parameters of the next part are gathered."""

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


class StateDictType(enum.Enum):
    """In which form the state of a spread model is asked for."""

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


class OptimStateKeyType(enum.Enum):
    """By what the state of an optimizer is found."""

    PARAM_NAME = enum.auto()
    PARAM_ID = enum.auto()
