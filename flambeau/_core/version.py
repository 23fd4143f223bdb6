"""Versions of memory: what every change in place counts, with the line that made it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from .process.caller import IS_INTERNAL, Place, place_of

Counter = list[Any]
"""Shared by all tensors that see the same memory: the version, and the place of the last in-place change.

Where others may change that memory without counting here, a `Memory` follows.
"""


class Memory:
    """What else changes the memory that a counter belongs to, so that copies of it can be known to be up to date."""

    __slots__ = ("changes", "counters", "is_known_outside")

    def __init__(self, counter: Counter) -> None:
        self.counters = [counter]
        """The counters of all tensors that were given this memory by `.data = ` or `set_`."""
        self.changes = 0
        """By tensors that `.data` has made, which have versions of their own."""
        self.is_known_outside = False
        """Whether somebody has its address."""


class DataCounter(Counter):
    """The version counter of what `.data` makes: it begins at 0, and changes count as changes of the memory, too."""

    __slots__ = ("memory",)

    def __init__(self, counter: Counter) -> None:
        super().__init__((0, None))
        self.memory = _memory_of(counter)

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, value)
        self.memory.changes += 1


def _memory_of(counter: Counter) -> Memory:
    if isinstance(counter, DataCounter):
        return counter.memory
    if len(counter) == 2:
        counter.append(Memory(counter))
    found: Memory = counter[2]
    return found


def share_memory(counter: Counter | None, other: Counter | None) -> None:
    """Take note that a tensor lies in the memory of another one from now on."""
    if counter is None or other is None:
        return
    memory = _memory_of(other)
    if all(each is not counter for each in memory.counters):
        memory.counters.append(counter)
    if isinstance(counter, DataCounter):
        counter.memory = memory
    else:
        counter[2:] = [memory]


def hand_out(counter: Counter | None) -> None:
    """Take note that somebody gets the address of memory: changes by it are not seen."""
    if counter is not None:
        _memory_of(counter).is_known_outside = True


def memory_version(counter: Counter | None) -> int | None:
    """A number that grows with every change of memory, by whichever tensor; None: not every change is counted."""
    if counter is None:
        return None
    if len(counter) == 2 and type(counter) is list:
        version: int = counter[0]
        return version
    memory: Memory = counter.memory if isinstance(counter, DataCounter) else counter[2]
    if memory.is_known_outside:
        return None
    number = memory.changes
    for each in memory.counters:
        number += each[0]
    return number


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
    """Count a change of the memory of all `tensors` that a call at `place` has changed."""
    for counter in [each._counter for each in tensors]:
        if counter is not None:
            counter[0] += 1
            counter[1] = place
