"""Streams whose work is held back and done in an order that a seed chooses, and races found by vector clocks.

A task is one piece of work in one stream: a kernel, a copy, a mark. It may run when the task before it in its stream is
done and those that it waits for; a seed chooses among all tasks that may. So a program that forgets to wait computes
with old bytes under some seeds. Beside that every task has a clock: what is known to be done before it begins. Two
tasks that touch the same bytes, at least one of which writes, and neither of which is known to come first are a race,
whatever the order in which they happened to run: `races` names both.
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NamedTuple

from flambeau._core.process.caller import GENERATED, PACKAGE, Place, describe_place

Key = tuple[int, ...]
"""A stream: its device and its handle; for a branch of a graph more."""

Clock = dict[Key, int]
"""For each stream the number of its last task that is known to be done."""

_HERE = os.path.dirname(__file__)
_PAGE = 9
"""Accesses are looked up by pages of so many bits of an address."""


class Access(NamedTuple):
    """Bytes that a task touches. `writes` None: the bytes are compared before and after, from `block` on."""

    begin: int
    end: int
    writes: bool | None
    block: int = 0


class Task:
    """A piece of work in a stream."""

    __slots__ = ("accesses", "clock", "done", "key", "number", "place", "run", "waits", "what")

    def __init__(self, key: Key, number: int, what: str, run: Callable[[], Any] | None) -> None:
        self.key = key
        self.number = number
        self.what = what
        self.run = run
        self.done = False
        self.clock: Clock = {}
        self.waits: list[Task] = []
        self.accesses: Sequence[Access] = ()
        self.place = _users_line()

    def follows(self, other: Task) -> bool:
        """Whether the other one is known to be done when this one begins."""
        return self.clock.get(other.key, 0) >= other.number

    def __str__(self) -> str:
        return f"{self.what} in {_name(self.key)} at {describe_place(self.place)}"


def _users_line() -> Place | None:
    """The innermost line outside of the package and of what plays the device."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith((_HERE, PACKAGE, GENERATED)):
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lasti)


def _name(key: Key) -> str:
    device, stream, *branch = key
    return f"stream {stream:#x} of cuda:{device}" + (" (in a graph)" if branch else "")


class _HostMemory(NamedTuple):
    """Page-locked memory that a copy reads or writes, and what is to be there until the host has waited for it."""

    task: Task
    begin: int
    content: bytearray
    reads: bool

    def overlaps(self, begin: int, nbytes: int) -> bool:
        """Whether some bytes are among these."""
        return self.begin < begin + nbytes and begin < self.begin + len(self.content)


class Schedule:
    """All streams of all devices, and the host."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.races: list[str] = []
        self._streams: dict[Key, deque[Task]] = {}
        self._tails: dict[Key, Task] = {}
        self._numbers: Clock = {}
        """For each stream the number of its last task."""
        self._host: Clock = {}
        self._pages: dict[int, list[tuple[int, int, bool, Task]]] = {}
        self._copies: list[_HostMemory] = []
        self._watched: list[tuple[Task, Access, bytes]] = []
        self.count = 0
        self.restart(0)

    def restart(self, seed: int) -> None:
        """Finish what is left, and let another seed choose from now on; below zero: all work is done at once."""
        with self.lock:
            self.finish()
            self.random = random.Random(seed)
            self._eagerness = self.random.choice((0.0, 0.05, 0.3, 0.8)) if seed >= 0 else 1.0
            self._straying = self.random.choice((0.0, 0.2, 0.7))
            self._weights: dict[Key, float] = {}
            self._pages.clear()
            for known in (self._tails, self._host):  # all is done, and nobody asks for the past; numbers go on
                known.clear()
            self.races.clear()
            self.count = 0

    # ----- giving work to streams -------------------------------------------------------------------------------------

    def enqueue(
        self,
        key: Key,
        what: str,
        run: Callable[[], Any] | None = None,
        accesses: Sequence[Access] = (),
        waits: Sequence[Task] = (),
    ) -> Task:
        """Put work into a stream; some of what waits may run now."""
        with self.lock:
            self._look_at_watched()
            before = self._tails.get(key)
            number = self._numbers[key] = self._numbers.get(key, 0) + 1
            task = Task(key, number, what, run)
            task.accesses = accesses
            clock = dict(self._host)
            for each in (*waits, before):
                if each is not None:
                    _merge(clock, each.clock)
                    if not each.done:
                        task.waits.append(each)
            clock[key] = task.number
            task.clock = clock
            self._tails[key] = task
            self._streams.setdefault(key, deque()).append(task)
            self.count += 1
            while self.random.random() < self._eagerness and self._run_any():
                pass
            return task

    def access_now(self, key: Key, what: str, access: Access) -> None:
        """The host plays a library that works in a stream: what is there is done, and the bytes are watched."""
        with self.lock:
            task = self.enqueue(key, what, None, (access._replace(writes=False),))
            self.run_until(task)
            self._watched.append((task, access, ctypes.string_at(access.begin, access.end - access.begin)))

    def hold_host_memory(self, task: Task, begin: int, nbytes: int, reads: bool) -> None:
        """A copy reads or writes page-locked memory: the host must leave it alone until it has waited."""
        with self.lock:
            now = bytearray(ctypes.string_at(begin, nbytes))
            if not reads:
                others = [each for each in self._copies if each.overlaps(begin, nbytes) and not each.task.done]
                if not others and not task.done:  # who reads it too early is to notice
                    ctypes.memset(begin, 0xFF, nbytes)
                now = bytearray(ctypes.string_at(begin, nbytes))
            self._copies.append(_HostMemory(task, begin, now, reads))

    # ----- waiting ----------------------------------------------------------------------------------------------------

    def tail(self, key: Key) -> Task | None:
        """The last task of a stream."""
        return self._tails.get(key)

    def wait_for(self, task: Task | None) -> None:
        """The host waits for a task."""
        if task is not None:
            with self.lock:
                self.run_until(task)
                self.know(task)

    def is_done(self, task: Task | None) -> bool:
        """The host asks whether a task is done; time passes meanwhile."""
        if task is None:
            return True
        with self.lock:
            while not task.done and self.random.random() < 0.5 and self._run_any():
                pass
            if task.done:
                self.know(task)
            return task.done

    def know(self, task: Task) -> None:
        """The host has found out that a task is done."""
        with self.lock:
            self._look_at_watched()
            _merge(self._host, task.clock)
            self._look_at_host_memory()

    def wait_for_device(self, device: int) -> None:
        """The host waits for all streams of a device."""
        with self.lock:
            for key in [key for key in self._tails if key[0] == device]:
                self.wait_for(self._tails[key])

    def finish(self) -> None:
        """Do everything that is left."""
        with self.lock:
            while self._run_any():
                pass
            for task in tuple(self._tails.values()):
                self.know(task)

    def run_until(self, task: Task) -> None:
        """Run what has to be done for a task and, now and then, something else."""
        with self.lock:
            while not task.done:
                if self.random.random() < self._straying:
                    self._run_any()
                    continue
                needed = task
                while True:
                    before = next((each for each in needed.waits if not each.done), None)
                    if before is None:
                        break
                    needed = before
                self._run(needed)

    # ----- running ----------------------------------------------------------------------------------------------------

    def _run_any(self) -> bool:
        ready = [queue[0] for queue in self._streams.values() if queue and all(each.done for each in queue[0].waits)]
        if not ready:
            return False
        weights = [self._weight(task.key) for task in ready]
        self._run(self.random.choices(ready, weights)[0])
        return True

    def _weight(self, key: Key) -> float:
        found = self._weights.get(key)
        if found is None:  # some streams hardly ever get their turn
            found = self._weights[key] = self.random.choice((0.02, 1.0, 1.0, 5.0))
        return found

    def _run(self, task: Task) -> None:
        queue = self._streams[task.key]
        assert queue[0] is task
        queue.popleft()
        if not queue:
            del self._streams[task.key]
        self._look_at_watched()
        unknown = {each.block: each for each in task.accesses if each.writes is None}
        before = {block: ctypes.string_at(block, each.end - block) for block, each in unknown.items()}
        if task.run is not None:
            task.run()
        task.done = True
        task.run = None
        task.waits = []
        for access in task.accesses:
            if access.writes is not None:
                self._note(task, access.begin, access.end, access.writes)
            else:
                self._note(task, access.begin, access.end, False)
        for block, access in unknown.items():
            self._note_change(task, block, access.end, before[block])
        for copy in self._copies:
            if copy.task is task:
                if copy.reads:
                    self._compare(copy)
                else:
                    copy.content[:] = ctypes.string_at(copy.begin, len(copy.content))

    def _note_change(self, task: Task, begin: int, end: int, before: bytes) -> None:
        after = ctypes.string_at(begin, end - begin)
        if after != before:
            first = next(at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new)
            last = next(at for at in range(len(before) - 1, -1, -1) if before[at] != after[at])
            self._note(task, begin + first, begin + last + 1, True)

    def _look_at_watched(self) -> None:
        if self._watched:
            watched, self._watched = self._watched, []
            for task, access, before in watched:
                self._note_change(task, access.begin, access.end, before)

    def _note(self, task: Task, begin: int, end: int, writes: bool) -> None:
        """Compare an access with all others of the same bytes that are not known to come before it."""
        if begin >= end:
            return
        for page in range(begin >> _PAGE, ((end - 1) >> _PAGE) + 1):
            entries = self._pages.get(page, ())
            kept = []
            for entry in entries:
                low, high, wrote, other = entry
                follows = task.follows(other)
                if not follows and (writes or wrote) and low < end and begin < high and other is not task:
                    self._report(other, wrote, task, writes, max(low, begin))
                if not (follows and other.key == task.key and begin <= low and high <= end and writes >= wrote):
                    kept.append(entry)
            kept.append((begin, end, writes, task))
            self._pages[page] = kept

    def _report(self, one: Task, wrote: bool, other: Task, writes: bool, place: int) -> None:
        if len(self.races) < 20:
            verbs = ["reads", "writes"]
            self.races.append(
                f"{one} {verbs[wrote]} the bytes at {place:#x} that {other} {verbs[writes]}, and neither waits for the "
                "other"
            )

    def _look_at_host_memory(self) -> None:
        """Compare page-locked memory, once the host knows that the copy is done: it may do as it likes from now on."""
        for copy in tuple(self._copies):
            if self._host.get(copy.task.key, 0) >= copy.task.number:
                self._compare(copy)
                self._copies.remove(copy)

    def _compare(self, copy: _HostMemory) -> None:
        others = [each for each in self._copies if each is not copy and not each.reads]
        if any(each.overlaps(copy.begin, len(copy.content)) for each in others):
            return  # another copy writes there: what the host did cannot be told apart
        if ctypes.string_at(copy.begin, len(copy.content)) != bytes(copy.content):
            verb = "reads" if copy.reads else "writes"
            self.races.append(
                f"{copy.task} {verb} page-locked memory of the host at {copy.begin:#x}, which the host changes without "
                "waiting for it"
            )


def _merge(clock: Clock, other: Clock) -> None:
    for key, number in other.items():
        if clock.get(key, 0) < number:
            clock[key] = number


SCHEDULE = Schedule()
