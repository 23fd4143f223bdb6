"""How closely collectives are watched, and how one process is stopped to look at it."""

from __future__ import annotations

import enum
import os
import pdb
import sys
from collections import Counter
from datetime import timedelta

__all__ = ["DebugLevel", "breakpoint", "get_debug_level", "set_debug_level", "set_debug_level_from_env"]


class DebugLevel(enum.IntEnum):
    """How closely. Whether processes do the same is checked at every level here: each message says what it is for.

    Example:
        >>> [each.name for each in dist.DebugLevel]
        ['OFF', 'INFO', 'DETAIL']
    """

    OFF, INFO, DETAIL = range(3)


_level = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    """The level, at first that of `TORCH_DISTRIBUTED_DEBUG`.

    Returns:
        DebugLevel: the level.

    Example:
        >>> dist.get_debug_level().name
        'OFF'
    """
    return _level


def set_debug_level(level: DebugLevel) -> None:
    """Change the level.

    Args:
        level (DebugLevel): the level.

    Example:
        >>> dist.set_debug_level(dist.DebugLevel.OFF)
    """
    global _level
    _level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """Take the level from `TORCH_DISTRIBUTED_DEBUG`.

    Example:
        >>> dist.set_debug_level_from_env()
    """
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError(f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO or DETAIL, and is {name!r}")
    set_debug_level(DebugLevel[name])


_passed: Counter[tuple[str, int]] = Counter()


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: float = 3600) -> None:
    """Stop one process in the debugger; the others wait for it, `timeout_s` seconds at most.

    `skip`: how often this line is passed before.

    Args:
        rank (int): the process that stops. Default: `0`.
        skip (int): how many calls are passed over first. Default: `0`.
        timeout_s (float): how many seconds the others wait. Default: `3600`.
    """
    from ._calls import monitored_barrier
    from ._world import get_rank

    frame = sys._getframe(1)
    if skip:
        place = frame.f_code.co_filename, frame.f_lineno
        _passed[place] += 1
        if _passed[place] <= skip:
            return
    if get_rank() == rank:
        pdb.Pdb().set_trace(frame)
    monitored_barrier(timeout=timedelta(seconds=timeout_s))


set_debug_level_from_env()
