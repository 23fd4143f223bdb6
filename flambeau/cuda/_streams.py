"""Queues of a CUDA device, and marks in them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .._backends.cuda.runtime.backward_streams import STREAM_USES
from .._backends.cuda.runtime.devices import on_device, use_ordinal
from .._backends.cuda.runtime.driver import driver
from .._backends.cuda.runtime.synchronization import HERE, SYNCHRONIZATIONS
from .._core.device import device as Device
from .._core.device import usable_device
from .._core.names.same_as import same_as
from .._core.text.inherited_docs import documented_like
from ._ordinals import index_of


def _library() -> Any:
    usable_device("cuda")
    return driver().library


class _Handle:
    """A queue that somebody else has made, as the library takes it."""

    def __init__(self, pointer: int) -> None:
        self._pointer = pointer

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._pointer


def _use(found: Any) -> None:
    """Let one of the library's queues be the one in use, and remember it for backward passes."""
    driver().use_stream(found)
    STREAM_USES.changed(found)


_IN_TURN = 32
_queues: dict[tuple[int, int], list[Any]] = {}
"""For each device and priority the queues that are handed out in turn, as PyTorch does: the pool remembers which ones
use a block, so that none may go."""
_handed_out: Counter[tuple[int, int]] = Counter()


def _queue(priority: int) -> Any:
    key = HERE.ordinal, priority
    queues = _queues.setdefault(key, [])
    number = _handed_out[key] % _IN_TURN
    _handed_out[key] += 1
    if number == len(queues):
        queues.append(_library().Stream(non_blocking=True, priority=priority))
    return queues[number]


class Stream:
    """A queue: what is started in it runs in order, beside what other queues hold."""

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self.device_index = index_of(device)
        found = options.get("found")
        with on_device(self.device_index):
            if found is None and options.get("stream_id"):
                found = _library().Stream.from_external(_Handle(options["stream_id"]))
            self._found = _queue(priority) if found is None else found
        self._priority = priority
        self._entered: list[tuple[int, Any]] = []

    @property
    def device(self) -> Device:
        return Device("cuda", self.device_index)

    device_type = 1

    @property
    def cuda_stream(self) -> int:
        """The handle of the queue."""
        return int(self._found.ptr)

    stream_id = cuda_stream

    priority: int = same_as("_priority")

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The least and the greatest priority that a queue can have."""
        return 0, -5

    def enter(self) -> None:
        """Let it be the queue in use, and its device the one in use."""
        before = HERE.ordinal
        use_ordinal(self.device_index)
        self._entered.append((before, _library().get_current_stream()))
        _use(self._found)

    def leave(self) -> None:
        """Let the queue and the device be in use that were before."""
        ordinal, found = self._entered.pop()
        use_ordinal(self.device_index)
        _use(found)
        use_ordinal(ordinal)

    def __enter__(self) -> Stream:
        self.enter()
        return self

    def __exit__(self, *exception: object) -> None:
        self.leave()

    def query(self) -> bool:
        """Whether everything in the queue is done."""
        with on_device(self.device_index):  # the default queues of all devices have one handle
            return bool(self._found.done)

    def synchronize(self) -> None:
        """Wait for everything in the queue; what kernels found wrong is raised here."""
        SYNCHRONIZATIONS.note("Stream.synchronize")
        with on_device(self.device_index):
            self._found.synchronize()
            driver().report_faults()

    def wait_event(self, event: Event) -> None:
        """Let what comes in the queue wait for a mark in another one."""
        if event._found is not None:
            with on_device(self.device_index):
                self._found.wait_event(event._found)

    def wait_stream(self, stream: Stream) -> None:
        """Let what comes in the queue wait for everything that is in another one."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Put a mark into the queue."""
        event = Event() if event is None else event
        event.record(self)
        return event

    @property
    def _as_parameter_(self) -> Any:
        import ctypes

        return ctypes.c_void_p(self.cuda_stream)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.cuda_stream

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return False
        return self.cuda_stream == other.cuda_stream and self.device_index == other.device_index

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self.device_index))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A queue that somebody else has made, by its handle."""

    def __init__(self, stream_ptr: int, device: Any = None, **options: Any) -> None:
        index = index_of(device)
        with on_device(index):
            super().__init__(index, found=_library().Stream.from_external(_Handle(stream_ptr)))


class _OpenedEvent:
    """An event of another process, as the library has its own."""

    def __init__(self, handle: bytes) -> None:
        self._runtime = _library().runtime
        self.ptr: int = self._runtime.ipcOpenEventHandle(handle)

    @property
    def done(self) -> bool:
        return bool(self._runtime.eventQuery(self.ptr) == 0)

    def record(self, stream: Any) -> None:
        self._runtime.eventRecord(self.ptr, stream.ptr)

    def synchronize(self) -> None:
        self._runtime.eventSynchronize(self.ptr)

    def __del__(self) -> None:
        if "ptr" in vars(self):
            self._runtime.eventDestroy(self.ptr)


class Event:
    """A mark in a queue: it has been reached or not, and when."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        self._options = {"block": blocking, "disable_timing": not enable_timing, "interprocess": interprocess}
        if interprocess and enable_timing:
            raise RuntimeError(
                "CUDA error: invalid argument: an event of several processes takes no times (enable_timing=False)"
            )
        self._found: Any = None
        self._ordinal: int | None = None
        """The number of the event's device: that of the queue in which it is first recorded."""

    @property
    def device(self) -> Device | None:
        return None if self._ordinal is None else Device("cuda", self._ordinal)

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark into a queue, the one in use by default."""
        queue = current_stream() if stream is None else stream
        if self._ordinal is None:
            self._ordinal = queue.device_index
        if queue.device_index != self._ordinal:
            raise RuntimeError(
                f"Event device {self._ordinal} does not match recording stream's device {queue.device_index}."
            )
        with on_device(self._ordinal):
            if self._found is None:
                self._found = _library().Event(**self._options)
            self._found.record(queue._found)

    def wait(self, stream: Stream | None = None) -> None:
        """Let what comes in a queue wait for the mark."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Whether the mark has been reached."""
        return self._found is None or bool(self._found.done)

    def synchronize(self) -> None:
        """Wait until the mark is reached; what kernels found wrong is raised here."""
        if self._found is None:
            return
        if HERE.recording is not None:
            SYNCHRONIZATIONS.note("Event.synchronize")
        self._found.synchronize()
        with on_device(self._ordinal or 0):
            driver().report_faults()

    def elapsed_time(self, end_event: Event) -> float:
        """The milliseconds from this mark to another one."""
        for each in (self, end_event):
            if each._options["disable_timing"]:
                raise ValueError("Both events must be created with argument 'enable_timing=True'.")
            if each._found is None:
                raise ValueError("Both events must be recorded before calculating elapsed time.")
            if not each.query():
                raise RuntimeError(
                    "Both events must be completed before calculating elapsed time: call synchronize() first."
                )
        return float(_library().get_elapsed_time(self._found, end_event._found))

    def ipc_handle(self) -> bytes:
        """What another process makes this event of, by `from_ipc_handle`; it must be made with `interprocess=True`."""
        if not self._options["interprocess"]:
            raise RuntimeError("Event.ipc_handle: the event must be made with torch.cuda.Event(interprocess=True)")
        if self._ordinal is None:
            self._ordinal = current_stream().device_index
        with on_device(self._ordinal):
            if self._found is None:
                self._found = _library().Event(**self._options)
            return bytes(_library().runtime.ipcGetEventHandle(self._found.ptr))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_ipc_handle, (self.device, self.ipc_handle())

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> Event:
        """The event of another process that has given its handle."""
        usable_device("cuda")
        event = cls(interprocess=True)
        event._ordinal = index_of(device)
        with on_device(event._ordinal):
            event._found = _OpenedEvent(handle)
        return event

    event_id: int = same_as("cuda_event", "The handle of the mark.")

    @property
    def cuda_event(self) -> int:
        """The handle of the mark; 0 before it is recorded."""
        return 0 if self._found is None else int(self._found.ptr)

    @property
    def _as_parameter_(self) -> Any:
        import ctypes

        return ctypes.c_void_p(self.cuda_event)

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self.cuda_event:#x}>" if self.cuda_event else "<torch.cuda.Event uninitialized>"


def current_stream(device: Any = None) -> Stream:
    """The queue in use.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        Stream: the stream.

    Example:
        >>> torch.cuda.current_stream() == torch.cuda.default_stream()
        True
    """
    index = index_of(device)
    with on_device(index):
        return Stream(index, found=_library().get_current_stream())


@documented_like(current_stream)
def default_stream(device: Any = None) -> Stream:
    """The queue that is in use unless another one is chosen.

    Example:
        >>> torch.cuda.current_stream() == torch.cuda.default_stream()
        True
    """
    return Stream(device, found=_library().Stream.null)


def set_stream(stream: Stream | None) -> None:
    """Let a queue be the one in use.

    Args:
        stream (Stream, optional): the stream; None means the one in use.

    Example:
        >>> torch.cuda.set_stream(torch.cuda.current_stream())
    """
    if stream is not None:
        _library()
        use_ordinal(stream.device_index)
        _use(stream._found)


def get_stream_from_external(data_ptr: int, device: Any = None) -> ExternalStream:
    """A queue that somebody else has made, by its handle.

    Args:
        data_ptr (int): the handle.
        device: the device or its ordinal; None means the one in use.

    Returns:
        ExternalStream: the stream.
    """
    return ExternalStream(data_ptr, device)
