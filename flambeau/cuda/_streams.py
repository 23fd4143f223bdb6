"""Queues of a CUDA device, and marks in them."""

from __future__ import annotations

from typing import Any

from .._core.device import device as Device
from .._core.device import usable_device


def _library() -> Any:
    usable_device("cuda")
    import cupy

    return cupy.cuda


class Stream:
    """A queue: what is started in it runs in order, beside what other queues hold."""

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self._found = (
            options["found"] if "found" in options else _library().Stream(non_blocking=True, priority=priority)
        )
        self._priority = priority
        self._entered: list[Any] = []

    @property
    def device(self) -> Device:
        return Device("cuda", 0)

    device_index = 0
    device_type = 1

    @property
    def cuda_stream(self) -> int:
        """The handle of the queue."""
        return int(self._found.ptr)

    stream_id = cuda_stream

    @property
    def priority(self) -> int:
        return self._priority

    def enter(self) -> None:
        """Let it be the queue in use."""
        self._entered.append(_library().get_current_stream())
        self._found.use()

    def leave(self) -> None:
        """Let the queue be in use that was before."""
        self._entered.pop().use()

    def __enter__(self) -> Stream:
        self.enter()
        return self

    def __exit__(self, *exception: object) -> None:
        self.leave()

    def query(self) -> bool:
        """Whether everything in the queue is done."""
        return bool(self._found.done)

    def synchronize(self) -> None:
        """Wait for everything in the queue."""
        self._found.synchronize()

    def wait_event(self, event: Event) -> None:
        """Let what comes in the queue wait for a mark in another one."""
        if event._found is not None:
            self._found.wait_event(event._found)

    def wait_stream(self, stream: Stream) -> None:
        """Let what comes in the queue wait for everything that is in another one."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Put a mark into the queue."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream

    def __hash__(self) -> int:
        return hash(self.cuda_stream)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A queue that somebody else has made, by its handle."""

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        super().__init__(device, found=_library().ExternalStream(stream_ptr))


class Event:
    """A mark in a queue: it has been reached or not, and when."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        self._options = {"block": blocking, "disable_timing": not enable_timing, "interprocess": interprocess}
        self._found: Any = None

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark into a queue, the one in use by default."""
        library = _library()
        if self._found is None:
            self._found = library.Event(**self._options)
        self._found.record(library.get_current_stream() if stream is None else stream._found)

    def wait(self, stream: Stream | None = None) -> None:
        """Let what comes in a queue wait for the mark."""
        if self._found is not None:
            (_library().get_current_stream() if stream is None else stream._found).wait_event(self._found)

    def query(self) -> bool:
        """Whether the mark has been reached."""
        return self._found is None or bool(self._found.done)

    def synchronize(self) -> None:
        """Wait until the mark is reached."""
        if self._found is not None:
            self._found.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """The milliseconds from this mark to another one."""
        for each in (self, end_event):
            if each._options["disable_timing"]:
                raise ValueError("Both events must be created with argument 'enable_timing=True'.")
            if each._found is None:
                raise ValueError("Both events must be recorded before calculating elapsed time.")
        return float(_library().get_elapsed_time(self._found, end_event._found))

    @property
    def cuda_event(self) -> int:
        """The handle of the mark; 0 before it is recorded."""
        return 0 if self._found is None else int(self._found.ptr)

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self.cuda_event:#x}>"


def current_stream(device: Any = None) -> Stream:
    """The queue in use."""
    return Stream(found=_library().get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """The queue that is in use unless another one is chosen."""
    return Stream(found=_library().Stream.null)


def set_stream(stream: Stream | None) -> None:
    """Let a queue be the one in use."""
    if stream is not None:
        stream._found.use()
