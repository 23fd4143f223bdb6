"""Which of several ways to the same result, to the bit, is the quickest here: timed once, and kept on disk.

That takes its time, so it is done only while somebody wishes it (`tuning`). Else rules decide.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

from ...._codegen.machine import cache
from ...._codegen.machine.engine import engine

Way = Callable[[], Callable[[], object]]
"""What prepares a way, and gives what is to be timed."""

_ROUNDS = 3
_SECONDS = 2e-3
"""For one way in one round; it runs at least twice."""


class _Thread(threading.local):
    tunes = False


_THREAD = _Thread()
_known: dict[str, str] = {}


def is_tuning() -> bool:
    """Whether ways are to be timed, in this thread."""
    return _THREAD.tunes


@contextmanager
def tuning(wished: bool = True) -> Iterator[None]:
    """Let ways be timed during the body."""
    before, _THREAD.tunes = _THREAD.tunes, wished
    try:
        yield
    finally:
        _THREAD.tunes = before


def quickest(what: str, facts: Any, ways: Mapping[str, Way]) -> str:
    """The name of the quickest way to do `what`; `facts`, which have a stable `repr`, are all that it depends on."""
    digest = cache.digest((engine().fingerprint, "quickest", what, repr(facts), *ways))
    found = _known.get(digest)
    if found is None:
        known = {name.encode(): name for name in ways}
        found = _known[digest] = cache.made_once(digest, lambda: _timed(ways).encode(), known.__getitem__)
    return found


def _timed(ways: Mapping[str, Way]) -> str:
    """The ways take turns, and the best time of each counts: what disturbs it makes it longer only."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(_ROUNDS):
        for name, prepare in ways.items():
            best[name] = min(best[name], _seconds(prepare()))
    return min(best, key=lambda name: best[name])


def _seconds(run: Callable[[], object]) -> float:
    best = float("inf")
    with np.errstate(all="ignore"):  # examples are any numbers
        run()
        end = perf_counter() + _SECONDS
        while True:
            start = perf_counter()
            run()
            now = perf_counter()
            best = min(best, now - start)
            if now > end:
                return best
