"""How many threads kernels may use, and whose: whoever runs threads of its own is told when that changes."""

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


_team = (0, 0, 0)
_told_of_teams: list[Callable[[int, int, int], None]] = []


def offer_team(run: int, number: int, size: int) -> None:
    """Let all kernels run on the threads of a library that has some of its own and waits with them.

    Threads of two pools would take each other's processors. These are addresses of OpenMP's functions:
    `run(function, context, threads, 0)` calls `function(context)` in each of its threads; there, `number()` is the
    number of the thread, and `size()` is how many threads there are.
    """
    global _team
    if not (run and number and size):
        return
    _team = run, number, size
    for tell in _told_of_teams:
        tell(run, number, size)


def when_offered(tell: Callable[[int, int, int], None]) -> None:
    """Call `tell(run, number, size)` now, if a library has offered its threads, and whenever one does."""
    _told_of_teams.append(tell)
    if all(_team):
        tell(*_team)
