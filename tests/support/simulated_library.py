"""Queues, marks and graphs of the simulated device: everything is done at once, unless it is being recorded."""

from __future__ import annotations

import itertools
import mmap
import sys
import threading
from bisect import bisect_right, insort
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._backends.cuda.memory.pool import Exhausted
from flambeau._backends.cuda.runtime.compile_queue import COMPILE_QUEUE
from flambeau._backends.cuda.runtime.synchronization import HERE
from tests.support import simulated_runtime as runtime

__all__ = ["Event", "HostSupplier", "Recorder", "Stream", "get_current_stream", "get_elapsed_time", "runtime"]


class Event:
    """A mark in a queue. It is reached at once, but a test can hold it back (`held`)."""

    held = False

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.ptr = next(_handles)
        self.time = 0.0

    def record(self, stream: Any = None) -> None:
        self.time = float(next(_handles))

    @property
    def done(self) -> bool:
        return not Event.held

    def synchronize(self) -> None:
        pass


class Stream:
    """A queue."""

    null: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False, priority: int = 0) -> None:
        self.device_id = HERE.ordinal
        self.ptr = 0 if null else next(_handles)
        self.priority = priority
        self.done = True
        self.synchronizations = 0

    @classmethod
    def from_external(cls, handle: Any) -> Stream:
        found = cls()
        found.ptr = handle.__cuda_stream__()[1]
        return found

    def use(self) -> None:
        _here.streams[HERE.ordinal] = self

    def synchronize(self) -> None:
        self.synchronizations += 1

    def wait_event(self, event: Event) -> None:
        pass


_handles = itertools.count(0x1000)
Stream.null = Stream(null=True)


class _Here(threading.local):
    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}
        """For each device the queue in use there, unless it is the default one."""


_here = _Here()


def get_current_stream() -> Stream:
    """The queue in use, on the device that the thread works on."""
    return _here.streams.get(HERE.ordinal, Stream.null)


def get_elapsed_time(begin: Event, end: Event) -> float:
    """The time between two marks."""
    return end.time - begin.time


class Recorder:
    """Does work, or writes it down."""

    def __init__(self) -> None:
        self.steps: list[Callable[[], Any]] | None = None

    def __call__(self, step: Callable[[], Any]) -> None:
        if self.steps is None:
            step()
        else:
            self.steps.append(step)


_NO_RESERVE = 0x4000
"""Linux: pages that nobody writes to take no memory."""


class HostSupplier:
    """The host's memory as a device of `capacity` bytes."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.taken: dict[int, Any] = {}
        self._ranges: list[tuple[int, int]] = []
        """Where the device's own memory begins and ends, in order."""
        self.reserved: dict[int, tuple[mmap.mmap, int, int]] = {}
        """Addresses that may get memory: the pages, their bytes, and where in the pages they begin."""
        self.mapped: dict[int, int] = {}
        """Those that have, in pieces of so many bytes."""

    def take(self, nbytes: int) -> int:
        if nbytes > self.memory()[0]:
            raise Exhausted
        pointer = self.take_host(nbytes)
        insort(self._ranges, (pointer, pointer + nbytes))
        return pointer

    def give(self, pointer: int) -> None:
        self.give_host(pointer)
        del self._ranges[bisect_right(self._ranges, (pointer,))]

    def give_host(self, pointer: int) -> None:
        COMPILE_QUEUE.catch_up()
        del self.taken[pointer]

    def has(self, pointer: int) -> bool:
        """Whether an address is in memory that was taken."""
        at = bisect_right(self._ranges, (pointer, sys.maxsize)) - 1
        return at >= 0 and self._ranges[at][0] <= pointer < self._ranges[at][1]

    def take_host(self, nbytes: int) -> int:
        memory = np.empty(nbytes + 512, np.uint8)
        start = memory.ctypes.data
        pointer: int = start + -start % 512
        self.taken[pointer] = memory
        return pointer

    def stream(self) -> int:
        return get_current_stream().ptr

    def finish(self) -> None:
        COMPILE_QUEUE.catch_up()

    def mark(self, ordinal: int, stream: int) -> Event:
        return Event()

    def reached(self, mark: Event) -> bool:
        return mark.done

    def wait_for(self, mark: Event) -> None:
        mark.synchronize()

    def memory(self) -> tuple[int, int]:
        mapped = sum(self.mapped.values())
        return self.capacity - mapped - sum(each.nbytes for each in self.taken.values()), self.capacity

    # ----- addresses that get memory later, as `ranges.py` asks for --------------------------------------------------

    def is_supported(self) -> bool:
        return True

    def reserve(self, nbytes: int) -> int:
        pages = mmap.mmap(-1, nbytes + (2 << 20), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
        start = np.frombuffer(pages, np.uint8).ctypes.data
        pointer: int = start + -start % (2 << 20)
        self.reserved[pointer] = pages, nbytes, pointer - start
        return pointer

    def release(self, pointer: int, nbytes: int) -> None:
        assert not any(pointer <= each < pointer + nbytes for each in self.mapped)
        assert self.reserved.pop(pointer)[1] == nbytes

    def map(self, pointer: int, nbytes: int, piece: int) -> bool:
        if nbytes > self.memory()[0]:
            return False
        for place in range(pointer, pointer + nbytes, piece):
            assert place not in self.mapped
            self.mapped[place] = piece
            insort(self._ranges, (place, place + piece))
        return True

    def unmap(self, pointer: int, nbytes: int, piece: int) -> None:
        for place in range(pointer, pointer + nbytes, piece):
            assert self.mapped.pop(place) == piece
            del self._ranges[bisect_right(self._ranges, (place,))]
            base = max(each for each in self.reserved if each <= place)
            pages, _, offset = self.reserved[base]
            pages.madvise(mmap.MADV_DONTNEED, place - base + offset & -mmap.PAGESIZE, piece)  # what was there is gone
