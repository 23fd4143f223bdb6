"""What `torch.distributed` has names for: how values are combined, and how parameters are spread."""

from __future__ import annotations

import enum


class _Reduction(enum.IntEnum):
    """How the values of the processes are combined."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM, UNUSED = range(10)


class ReduceOp:
    """How the values of the processes are combined."""

    RedOpType = _Reduction
    SUM, AVG, PRODUCT, MIN, MAX = _Reduction.SUM, _Reduction.AVG, _Reduction.PRODUCT, _Reduction.MIN, _Reduction.MAX
    BAND, BOR, BXOR, PREMUL_SUM = _Reduction.BAND, _Reduction.BOR, _Reduction.BXOR, _Reduction.PREMUL_SUM


reduce_op = ReduceOp


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
