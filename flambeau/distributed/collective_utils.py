"""Values told to all processes, or by all to all, with the errors of those that could not make theirs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from . import _objects
from ._world import ProcessGroup

__all__ = ["SyncPayload", "all_gather", "all_gather_object_enforce_type", "broadcast"]

T = TypeVar("T")


@dataclass
class SyncPayload(Generic[T]):
    """What a process tells: at which stage it is, whether it has succeeded, its value and its error."""

    stage_name: str | None
    success: bool
    payload: T
    exception: Exception | None = None


def _made(data_or_fn: Any, stage: str | None, success: bool = True) -> SyncPayload[Any]:
    """The value, or what a function gives or raises."""
    if not callable(data_or_fn):
        return SyncPayload(stage, success, data_or_fn)
    try:
        return SyncPayload(stage, True, data_or_fn())
    except Exception as error:
        return SyncPayload(stage, False, None, error)


def broadcast(
    data_or_fn: T | Callable[[], T],
    *,
    success: bool = True,
    stage_name: str | None = None,
    rank: int = 0,
    pg: ProcessGroup | None = None,
) -> T:
    """The value of one process, or what a function gives there, on all; an error there is one on all.

    >>> from flambeau.distributed.collective_utils import broadcast
    >>> broadcast(lambda: 3)
    3
    """
    if not success and data_or_fn is not None:
        raise AssertionError("Data or Function is expected to be None if not successful")
    told: Any = None
    if pg is None or pg.rank() == rank:
        told = _made(data_or_fn, stage_name, success)
    if pg is not None:
        box = [told]
        _objects.broadcast_object_list(box, group=pg, group_src=rank)
        told = box[0]
    if not told.success:
        stage = f"stage {told.stage_name}: " if told.stage_name else ""
        raise RuntimeError(f"Rank {rank} failed: {stage}exception {told.exception}") from told.exception
    if stage_name != told.stage_name:
        raise RuntimeError(f"Out-of-sync stage name, expected {told.stage_name}, got {stage_name}")
    value: T = told.payload
    return value


def all_gather(
    data_or_fn: T | Callable[[], T], stage_name: str | None = None, pg: ProcessGroup | None = None
) -> list[T]:
    """The values of all processes, on each; an error of one is one on all.

    >>> from flambeau.distributed.collective_utils import all_gather
    >>> all_gather(5)
    [5]
    """
    own = _made(data_or_fn, stage_name)
    told = [own]
    if pg is not None:
        told = [own] * pg.size()
        all_gather_object_enforce_type(pg, told, own)
    for each in told:
        if not each.success:
            raise RuntimeError(f"all_gather failed with exception {each.exception}") from each.exception
        if each.stage_name != stage_name:
            raise RuntimeError(f"Out-of-sync stage name, expected {stage_name}, got {each.stage_name}")
    return [each.payload for each in told]


def all_gather_object_enforce_type(
    pg: ProcessGroup,
    object_list: list[Any],
    obj: Any,
    type_checker: Callable[[Any, Any], bool] = lambda x, y: type(x) is type(y),
) -> None:
    """`all_gather_object` that fails on all processes if their objects are not of one kind."""
    _objects.all_gather_object(object_list, obj, pg)
    for first, second in itertools.pairwise(object_list):
        if not type_checker(first, second):
            raise TypeError(f"Object type at index differs: {type(first)} and {type(second)}")
