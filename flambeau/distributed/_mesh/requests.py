"""What is under way: messages to be sent, messages to be received, and the tasks that wait for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

from ..._core.process.caller import Place, describe_place
from .._errors import DistBackendError

Key = tuple[int, int]
"""To what a message belongs: the number of a group, and the tag of a message or the number of a collective."""


class Request:
    """Something that is done later, or fails."""

    __slots__ = ("done", "error", "task")

    def __init__(self) -> None:
        self.done = False
        self.error: BaseException | None = None
        self.task: Task | None = None


class Send(Request):
    """A message on its way out: the pieces that the system has not taken yet."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: list[memoryview]) -> None:
        super().__init__()
        self.pieces = pieces


class Receive(Request):
    """A place for a message that is expected: from `peer`, or from anyone if that is None."""

    __slots__ = ("buffer", "key", "peer", "signature")

    def __init__(self, peer: int | None, key: Key, signature: int, buffer: memoryview) -> None:
        super().__init__()
        self.peer = peer
        self.key = key
        self.signature = signature
        self.buffer = buffer


Steps = Generator[Sequence[Request], None, None]
"""An algorithm: it yields the requests without which it cannot go on."""


class Task(Request):
    """An algorithm under way."""

    __slots__ = ("began", "callbacks", "deadline", "ended", "label", "limit", "missing", "place", "steps", "waits_for")

    def __init__(self, steps: Steps, label: str, limit: float, place: Place | None) -> None:
        super().__init__()
        self.steps = steps
        self.label = label
        self.limit = limit
        self.deadline = time.monotonic() + limit
        self.began = self.ended = time.perf_counter_ns()
        self.place = place
        self.missing = 0
        self.callbacks: list[Callable[[], None]] = []
        self.waits_for: Sequence[Request] = ()

    def advance(self) -> bool:
        """Go on until something is missing; whether the task is over."""
        try:
            while True:
                for request in self.waits_for:
                    if request.error is not None:
                        raise request.error
                self.waits_for = next(self.steps)
                self.missing = 0
                for request in self.waits_for:
                    if not request.done:
                        request.task = self
                        self.missing += 1
                if self.missing:
                    return False
        except StopIteration:
            self.ended = time.perf_counter_ns()
            self.done = True
        except BaseException as error:
            self.fail(error)
        return True

    def fail(self, error: BaseException) -> None:
        """End with an error, which says what was under way and where it was called."""
        if isinstance(error, OSError):
            error = DistBackendError(f"shared memory cannot be used: {error}")
        if isinstance(error, DistBackendError) and self.label not in str(error):
            error = DistBackendError(f"{error}. It was in {self.label}, called at {describe_place(self.place)}")
        self.error = error
        self.ended = time.perf_counter_ns()
        self.done = True
        self.steps.close()

    def peers_missing(self) -> list[int]:
        """The processes from which something is still expected."""
        waiting = {each.peer for each in self.waits_for if isinstance(each, Receive) and not each.done}
        return sorted(peer for peer in waiting if peer is not None)


def bytes_of(array: Any) -> memoryview:
    """The memory of a contiguous array."""
    return memoryview(array.reshape(-1).view("u1"))
