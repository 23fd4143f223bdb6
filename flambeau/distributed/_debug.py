"""How closely collectives are watched."""

from __future__ import annotations

import enum
import os

__all__ = ["DebugLevel", "get_debug_level", "set_debug_level", "set_debug_level_from_env"]


class DebugLevel(enum.IntEnum):
    """How closely. Whether processes do the same is checked at every level here: each message says what it is for."""

    OFF, INFO, DETAIL = range(3)


_level = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    """The level, at first that of `TORCH_DISTRIBUTED_DEBUG`."""
    return _level


def set_debug_level(level: DebugLevel) -> None:
    """Change the level."""
    global _level
    _level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """Take the level from `TORCH_DISTRIBUTED_DEBUG`."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError(f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO or DETAIL, and is {name!r}")
    set_debug_level(DebugLevel[name])


set_debug_level_from_env()
