"""How processes are bound to sockets."""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["AffinityMode", "NumaOptions"]


class AffinityMode(str, enum.Enum):
    """What a process is bound to."""

    NODE = "node"
    SOCKET = "socket"
    EXCLUSIVE = "exclusive"
    CORE_COMPLEX = "core-complex"


@dataclass(frozen=True)
class NumaOptions:
    """How processes are to be bound."""

    affinity_mode: AffinityMode
    should_fall_back_if_binding_fails: bool = False
