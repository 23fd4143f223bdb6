"""The options that calls on a group itself take."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from .._core.text.inherited_docs import documented_like
from .reductions import ReduceOp

__all__ = [
    "AllToAllOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions", "BroadcastOptions",
    "GatherOptions", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions",
]  # fmt: skip

_NONE = timedelta(milliseconds=-1)
"""The time limit is that of the group."""


@dataclass
class AllToAllOptions:
    """The options of `ProcessGroup.alltoall`.

    Args:
        timeout (timedelta): how long to wait before an error.
        asyncOp (bool): whether the call returns at once. Default: `True`.

    Example:
        >>> dist.AllToAllOptions().asyncOp
        True
    """

    timeout: timedelta = _NONE
    asyncOp: bool = True


@dataclass
class _Reducing(AllToAllOptions):
    reduceOp: Any = ReduceOp.SUM


@dataclass
class _WithRoot(AllToAllOptions):
    rootRank: int = 0


@dataclass
class AllreduceOptions(_Reducing):
    """The options of `ProcessGroup.allreduce`.

    Args:
        timeout (timedelta): how long to wait before an error.
        asyncOp (bool): whether the call returns at once. Default: `True`.
        reduceOp: how values are combined. Default: `RedOpType.SUM`.

    Example:
        >>> dist.AllreduceOptions(reduceOp=dist.ReduceOp.MAX).asyncOp
        True
    """


@documented_like(AllreduceOptions)
@dataclass
class AllreduceCoalescedOptions(AllreduceOptions):
    """The options of `ProcessGroup.allreduce_coalesced`.

    Example:
        >>> dist.AllreduceCoalescedOptions().asyncOp
        True
    """


@documented_like(AllreduceOptions)
@dataclass
class ReduceScatterOptions(_Reducing):
    """The options of `ProcessGroup.reduce_scatter`.

    Example:
        >>> dist.ReduceScatterOptions().asyncOp
        True
    """


@dataclass
class GatherOptions(_WithRoot):
    """The options of `ProcessGroup.gather`.

    Args:
        timeout (timedelta): how long to wait before an error.
        asyncOp (bool): whether the call returns at once. Default: `True`.
        rootRank (int): the rank of the process that has, or gets, the values. Default: `0`.

    Example:
        >>> dist.GatherOptions(rootRank=1).rootRank
        1
    """


@documented_like(GatherOptions)
@dataclass
class ScatterOptions(_WithRoot):
    """The options of `ProcessGroup.scatter`.

    Example:
        >>> dist.ScatterOptions(rootRank=1).rootRank
        1
    """


@dataclass
class BroadcastOptions(_WithRoot):
    """The options of `ProcessGroup.broadcast`; each process has one tensor.

    Args:
        timeout (timedelta): how long to wait before an error.
        asyncOp (bool): whether the call returns at once. Default: `True`.
        rootRank (int): the rank of the process that has, or gets, the values. Default: `0`.
        rootTensor (int): which of its tensors. Default: `0`.

    Example:
        >>> dist.BroadcastOptions(rootRank=1).rootRank
        1
    """

    rootTensor: int = 0


@documented_like(BroadcastOptions)
@dataclass
class ReduceOptions(_WithRoot):
    """The options of `ProcessGroup.reduce`; each process has one tensor.

    Args:
        reduceOp: how values are combined. Default: `RedOpType.SUM`.

    Example:
        >>> dist.ReduceOptions(rootRank=1).rootRank
        1
    """

    rootTensor: int = 0
    reduceOp: Any = ReduceOp.SUM


@dataclass
class BarrierOptions(AllToAllOptions):
    """The options of `ProcessGroup.barrier`; processors have no numbers.

    Args:
        timeout (timedelta): how long to wait before an error.
        asyncOp (bool): whether the call returns at once. Default: `True`.
        device_ids (list of ints): not used.
        device: not used.

    Example:
        >>> dist.BarrierOptions().device_ids
        []
    """

    device_ids: list[int] = field(default_factory=list)
    device: Any = None
