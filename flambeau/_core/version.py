"""Versions of memory: what every change in place counts, with the line that made it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from .process.caller import IS_INTERNAL, Place, place_of

Counter = list[Any]
"""Shared by all tensors that see the same memory: the version, and the place of the last in-place change."""


def note_change(counter: Counter, inner: int = 2) -> None:
    """Count a change of the memory that `counter` belongs to, made by the innermost line outside this package.

    `inner`: so many callers are known to be the package's. (`calling_place`, written out: tiny tensors feel calls.)
    """
    counter[0] += 1
    try:
        frame = sys._getframe(inner + 1)
    except ValueError:  # called from no Python code at all: a thread can start in one of our methods
        counter[1] = None
        return
    code = frame.f_code
    counter[1] = place_of(frame.f_back) if IS_INTERNAL[code.co_filename] else (code, frame.f_lasti)


def note_changes(tensors: Iterable[Any], place: Place | None) -> None:
    """The same for all `tensors` that a call at `place` has changed."""
    for counter in [each._counter for each in tensors]:
        if counter is not None:
            counter[0] += 1
            counter[1] = place
