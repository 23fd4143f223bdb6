"""What the pools ask of a GPU, by the runtime library: memory of the device and of the host, marks in queues."""

from __future__ import annotations

from typing import Any

from ..runtime.compile_queue import COMPILE_QUEUE
from ..runtime.synchronization import HERE
from .pool import Exhausted

_NO_MEMORY = 2
_NO_TIMING = 2
_PORTABLE = 1


class Mark:
    """A mark in a queue; gone with the last who refers to it."""

    __slots__ = ("_runtime", "event")

    def __init__(self, runtime: Any, ordinal: int, stream: int) -> None:
        COMPILE_QUEUE.catch_up()
        self._runtime = runtime
        before, is_another = HERE.ordinal, HERE.ordinal != ordinal
        if is_another:  # an event is one of the device in use, and a default queue is that of the device in use
            HERE.ordinal = ordinal
            runtime.setDevice(ordinal)
        try:
            self.event: int = runtime.eventCreateWithFlags(_NO_TIMING)
            runtime.eventRecord(self.event, stream)
        finally:
            if is_another:
                HERE.ordinal = before
                runtime.setDevice(before)

    def __del__(self) -> None:
        self._runtime.eventDestroy(self.event)


class RuntimeSupplier:
    """The device in use."""

    def __init__(self, runtime: Any, current_stream: Any) -> None:
        self._runtime = runtime
        self._current_stream = current_stream

    def take(self, nbytes: int) -> int:
        """Memory of the device."""
        try:
            return int(self._runtime.malloc(nbytes))
        except self._runtime.CUDARuntimeError as error:
            if error.status == _NO_MEMORY:
                raise Exhausted from None
            raise

    def give(self, pointer: int) -> None:
        """Return memory of the device: this waits for everything that was started."""
        COMPILE_QUEUE.catch_up()
        self._runtime.free(pointer)

    def finish(self) -> None:
        """Wait for everything that was started on the device."""
        COMPILE_QUEUE.catch_up()
        self._runtime.deviceSynchronize()

    def take_host(self, nbytes: int) -> int:
        """Take page-locked memory from the system."""
        return int(self._runtime.hostAlloc(nbytes, _PORTABLE))

    def give_host(self, pointer: int) -> None:
        """Give page-locked memory back to the system."""
        COMPILE_QUEUE.catch_up()
        self._runtime.freeHost(pointer)

    def stream(self) -> int:
        """The queue in use."""
        return int(self._current_stream().ptr)

    def mark(self, ordinal: int, stream: int) -> Mark:
        """A mark in a queue of a device."""
        return Mark(self._runtime, ordinal, stream)

    def reached(self, mark: Mark) -> bool:
        """Whether a queue has come to a mark."""
        return bool(self._runtime.eventQuery(mark.event) == 0)

    def wait_for(self, mark: Mark) -> None:
        """Wait until it has."""
        self._runtime.eventSynchronize(mark.event)

    def memory(self) -> tuple[int, int]:
        """How many bytes of the device are free, and how many there are."""
        free, total = self._runtime.memGetInfo()
        return int(free), int(total)
