"""The options that calls on a group itself take."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from .reductions import ReduceOp

__all__ = [
    "AllToAllOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions", "BroadcastOptions",
    "GatherOptions", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions",
]  # fmt: skip

_NONE = timedelta(milliseconds=-1)
"""The time limit is that of the group."""


@dataclass
class AllToAllOptions:
    """Of `alltoall`."""

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
    """Of `allreduce`."""


@dataclass
class AllreduceCoalescedOptions(AllreduceOptions):
    """Of `allreduce_coalesced`."""


@dataclass
class ReduceScatterOptions(_Reducing):
    """Of `reduce_scatter`."""


@dataclass
class GatherOptions(_WithRoot):
    """Of `gather`."""


@dataclass
class ScatterOptions(_WithRoot):
    """Of `scatter`."""


@dataclass
class BroadcastOptions(_WithRoot):
    """Of `broadcast`; each process has one tensor."""

    rootTensor: int = 0


@dataclass
class ReduceOptions(_WithRoot):
    """Of `reduce`; each process has one tensor."""

    rootTensor: int = 0
    reduceOp: Any = ReduceOp.SUM


@dataclass
class BarrierOptions(AllToAllOptions):
    """Of `barrier`; processors have no numbers."""

    device_ids: list[int] = field(default_factory=list)
    device: Any = None
