"""How many threads kernels may use; whoever runs threads of its own is told when the number changes."""

from __future__ import annotations

import os
from collections.abc import Callable


def _default() -> int:
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_number = _default()
_told: list[Callable[[int], None]] = []


def num_threads() -> int:
    """How many threads kernels may use."""
    return _number


def change_num_threads(number: int) -> None:
    """Let kernels use `number` threads."""
    global _number
    _number = number
    for tell in _told:
        tell(number)


def when_changed(tell: Callable[[int], None]) -> None:
    """Call `tell(number)` now and whenever the number changes."""
    _told.append(tell)
    tell(_number)
