"""The CPU under the names that device packages have: one device, always there, never behind."""

from __future__ import annotations

import time
from typing import Any

from .._core.device import CPU
from .._core.device import device as as_device
from . import amp, memory
from ._capabilities import get_capabilities
from .memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_peak_memory_stats,
    set_memory_cache_limit,
    set_per_process_memory_fraction,
)

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "empty_cache",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_peak_memory_stats",
    "set_device",
    "set_memory_cache_limit",
    "set_per_process_memory_fraction",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is a CPU."""
    return True


def is_initialized() -> bool:
    """Whether the CPU is in use."""
    return True


def device_count() -> int:
    """The number of CPU devices."""
    return 1


def current_device() -> str:
    """The device in use."""
    return "cpu"


def set_device(device: Any) -> None:
    """Choose the device in use; there is one, so this does nothing."""


def synchronize(device: Any = None) -> None:
    """Wait for the device; ops on the CPU are done when they return."""


class Stream:
    """Stands for a queue of work; work on the CPU is done at once.

    Args:
        priority: means something on a GPU. Default: `-1`.
        device: the device; None means the CPU.
        **numbers: `stream_id` and others, which name an existing queue.

    Example:
        >>> stream = torch.cpu.Stream()
        >>> stream.wait_stream(torch.cpu.current_stream())
    """

    device = CPU
    device_index = -1
    device_type = 0
    stream_id = 0
    native_handle = 0

    def __init__(self, priority: Any = -1, *, device: Any = None, **numbers: int) -> None:
        place = priority if device is None else device  # `torch.Stream` has the device first, `torch.cpu.Stream` not
        if not isinstance(place, int) and as_device(place).type != "cpu":
            raise RuntimeError(f"torch.Stream: a queue of {place} is made by the package of that device")

    def query(self) -> bool:
        """Whether all work is done."""
        return True

    def synchronize(self) -> None:
        """Wait until all work is done."""

    def is_capturing(self) -> bool:
        """Whether work is recorded and not done."""
        return False

    def __repr__(self) -> str:
        return "torch.Stream device_type=cpu, device_index=-1, stream_id=0"

    def wait_stream(self, stream: Any) -> None:
        """Wait for another queue."""

    def record_event(self) -> None:
        """Mark a place in the queue."""

    def wait_event(self, event: Any) -> None:
        """Wait for a mark."""


class Event:
    """Stands for a mark in a queue of work; work on the CPU is done when it is recorded.

    Args:
        device: the device; None means the CPU.
        **options: `enable_timing` and others, which mean something on a GPU.

    Example:
        >>> event = torch.cpu.Event()
        >>> event.query()
        True
    """

    device = CPU
    event_id = 0

    def __init__(self, device: Any = None, **options: Any) -> None:
        self._time: float | None = None

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to another, both set by `record`."""
        if self._time is None or end_event._time is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end_event._time - self._time) * 1000

    def ipc_handle(self) -> bytes:
        """An error: only marks of a GPU are shared between processes."""
        raise RuntimeError("Event.ipc_handle: only events of CUDA devices are shared between processes")

    @classmethod
    def from_ipc_handle(cls, device: Any, ipc_handle: bytes) -> Event:
        """An error, as above."""
        raise RuntimeError("Event.from_ipc_handle: only events of CUDA devices are shared between processes")

    def query(self) -> bool:
        """Whether the work before the mark is done."""
        return True

    def record(self, stream: Any = None) -> None:
        """Set the mark."""
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        """Wait for the work before the mark."""

    def wait(self, stream: Any = None) -> None:
        """Let a queue wait for the mark."""


_current_stream = Stream()


def current_stream(device: Any = None) -> Stream:
    """The queue in use."""
    return _current_stream


class StreamContext:
    """A context in which another queue is in use."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        global _current_stream
        self._before = _current_stream
        if self.stream is not None:
            _current_stream = self.stream

    def __exit__(self, *exception: object) -> None:
        global _current_stream
        _current_stream = self._before


def stream(stream: Stream | None) -> StreamContext:
    """A context in which `stream` is in use."""
    return StreamContext(stream)
