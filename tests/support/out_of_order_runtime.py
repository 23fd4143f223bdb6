"""CUDA's runtime and CuPy's module `cupy.cuda`, played by the host with the streams of `stream_schedule.py`.

The driver of the CUDA backend runs on it unchanged: its copies, waits and marks are those that a GPU gets. What a GPU
refuses is refused: work for a stream of another device than the thread's, waiting while a stream is captured.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.support.stream_schedule import SCHEDULE, Access, Key, Task

CAPACITY = 4 << 30


class CUDARuntimeError(RuntimeError):
    """What the runtime raises."""

    def __init__(self, status: int, text: str = "") -> None:
        super().__init__(f"CUDA error {status} {text}")
        self.status = status


class _Here(threading.local):
    device = 0

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}


_here = _Here()
_handles = itertools.count(0x1000)


class Node:
    """Work that is captured."""

    def __init__(self, key: Key, what: str, run: Callable[[], Any] | None, accesses: Sequence[Access]) -> None:
        self.key, self.what, self.run, self.accesses = key, what, run, accesses
        self.waits: list[Node] = []


class Capture:
    """What a stream, and those that wait for it, are given while it is captured."""

    def __init__(self, origin: Key) -> None:
        self.origin = origin
        self.nodes: list[Node] = []
        self.tails: dict[Key, Node | None] = {origin: None}

    def add(self, node: Node, waits: Sequence[Node] = ()) -> None:
        before = self.tails.get(node.key)
        node.waits = [*waits, *([] if before is None else [before])]
        self.tails[node.key] = node
        self.nodes.append(node)

    def joined(self) -> bool:
        """Whether everything is done when the stream's own last work is."""
        found: set[int] = set()
        left = [self.tails[self.origin]]
        while left:
            node = left.pop()
            if node is not None and id(node) not in found:
                found.add(id(node))
                left += node.waits
        return all(tail is None or id(tail) in found for tail in self.tails.values())


class RawEvent:
    """A mark in a stream."""

    def __init__(self) -> None:
        self.device = _here.device
        self.task: Task | None = None
        self.captured: tuple[Capture, Node | None] | None = None
        self.time = 0.0


class Runtime:
    """The functions of the runtime that the backend calls, for the device of the calling thread."""

    CUDARuntimeError = CUDARuntimeError
    streamCaptureModeRelaxed = 2

    def __init__(self, devices: int) -> None:
        self.devices = devices
        self.capacity = [CAPACITY] * devices
        self.memory: dict[int, tuple[Any, int, int]] = {}
        """For the address of what was taken: what keeps it alive, its bytes, its device (-1: page-locked memory)."""
        self._ranges: list[tuple[int, int, int]] = []
        self._blocks: list[tuple[int, int]] = []
        """What the pools handed out last, in order."""
        self._captures: dict[Key, Capture] = {}
        self._owners: dict[int, int] = {}
        self._events: dict[int, RawEvent] = {}
        self._graphs: dict[int, Capture] = {}
        self._launches = itertools.count(1)

    # ----- memory -----------------------------------------------------------------------------------------------------

    def setDevice(self, device: int) -> None:
        _here.device = device

    def getDevice(self) -> int:
        return _here.device

    def getDeviceCount(self) -> int:
        return self.devices

    def getDeviceProperties(self, device: int) -> dict[str, Any]:
        return {"name": b"simulated", "major": 9, "minor": 0, "multiProcessorCount": 132}

    def driverGetVersion(self) -> int:
        return 12000

    runtimeGetVersion = driverGetVersion

    def malloc(self, nbytes: int) -> int:
        if nbytes > self.memGetInfo()[0]:
            raise CUDARuntimeError(2, "out of memory")
        return self._take(nbytes, _here.device)

    def hostAlloc(self, nbytes: int, flags: int) -> int:
        return self._take(nbytes, -1)

    def _take(self, nbytes: int, device: int) -> int:
        kept = np.empty(nbytes + 512, np.uint8)
        kept[:] = 0xA5  # nobody counts on zeros
        begin = kept.ctypes.data
        pointer: int = begin + -begin % 512
        with SCHEDULE.lock:
            self.memory[pointer] = kept, nbytes, device
            insort(self._ranges, (pointer, pointer + nbytes, device))
        return pointer

    def free(self, pointer: int) -> None:
        SCHEDULE.wait_for_device(self.memory[pointer][2])
        self._forget(pointer)

    def freeHost(self, pointer: int) -> None:
        for device in range(self.devices):
            SCHEDULE.wait_for_device(device)
        self._forget(pointer)

    def _forget(self, pointer: int) -> None:
        with SCHEDULE.lock:
            del self.memory[pointer]
            del self._ranges[bisect_right(self._ranges, (pointer,))]

    def memGetInfo(self) -> tuple[int, int]:
        device = _here.device
        taken = sum(nbytes for _, nbytes, owner in tuple(self.memory.values()) if owner == device)
        return self.capacity[device] - taken, self.capacity[device]

    def device_of(self, address: int) -> int | None:
        """The device whose memory an address is in; -1 for page-locked memory, None for other memory of the host."""
        at = bisect_right(self._ranges, (address, sys.maxsize)) - 1
        if at >= 0 and self._ranges[at][0] <= address < self._ranges[at][1]:
            return self._ranges[at][2]
        return None

    def handed_out(self, begin: int, nbytes: int) -> None:
        """A pool hands out a block: what was there before is gone."""
        end = begin + max(nbytes, 1)
        with SCHEDULE.lock:
            blocks = self._blocks
            low = max(bisect_right(blocks, (begin,)) - 1, 0)
            high = low
            while high < len(blocks) and blocks[high][0] < end:
                high += 1
            kept = [each for each in blocks[low:high] if each[1] <= begin]
            blocks[low:high] = [*kept, (begin, end)]

    def block_of(self, address: int) -> tuple[int, int] | None:
        """The block of a pool that an address is in."""
        at = bisect_right(self._blocks, (address, sys.maxsize)) - 1
        if at >= 0 and self._blocks[at][0] <= address < self._blocks[at][1]:
            return self._blocks[at]
        return None

    # ----- streams ----------------------------------------------------------------------------------------------------

    def key(self, stream: int) -> Key:
        """A stream by its handle; 0 is the default one of the thread's device."""
        if not stream:
            return _here.device, 0
        return self._owners.get(stream, _here.device), stream

    def new_stream(self) -> int:
        """The handle of a new stream of the thread's device."""
        found = next(_handles)
        self._owners[found] = _here.device
        return found

    streamCreate = new_stream

    def do(self, stream: int, what: str, run: Callable[[], Any] | None, accesses: Sequence[Access] = ()) -> Task | None:
        """Give work to a stream of the thread's device; None: it is captured."""
        key = self.key(stream)
        if key[0] != _here.device:
            raise CUDARuntimeError(400, f"a thread on cuda:{_here.device} gives work to a stream of cuda:{key[0]}")
        capture = self._captures.get(key)
        if capture is not None:
            capture.add(Node(key, what, run, accesses))
            return None
        return SCHEDULE.enqueue(key, what, run, accesses)

    def _forbid_in_capture(self, key: Key) -> None:
        if key in self._captures:
            raise CUDARuntimeError(900, "operation not permitted when stream is capturing")

    def streamSynchronize(self, stream: int) -> None:
        key = self.key(stream)
        self._forbid_in_capture(key)
        SCHEDULE.wait_for(SCHEDULE.tail(key))

    def streamQuery(self, stream: int) -> bool:
        key = self.key(stream)
        self._forbid_in_capture(key)
        return SCHEDULE.is_done(SCHEDULE.tail(key))

    def streamWaitEvent(self, stream: int, event: int, flags: int = 0) -> None:
        key, found = self.key(stream), self._events[event]
        capture = self._captures.get(key)
        if found.captured is not None:
            its, node = found.captured
            if capture is None:
                self._captures[key] = its
                its.tails.setdefault(key, None)
            its.add(Node(key, "a wait", None, ()), [] if node is None else [node])
        elif capture is not None:
            raise CUDARuntimeError(905, "a captured stream waits for work that is not captured")
        elif found.task is not None:
            SCHEDULE.enqueue(key, "a wait", None, (), [found.task])

    # ----- events -----------------------------------------------------------------------------------------------------

    def eventCreateWithFlags(self, flags: int) -> int:
        handle = next(_handles)
        self._events[handle] = RawEvent()
        return handle

    def eventDestroy(self, event: int) -> None:
        self._events.pop(event, None)

    def eventRecord(self, event: int, stream: int) -> None:
        found, key = self._events[event], self.key(stream)
        if found.device != key[0]:
            raise CUDARuntimeError(400, f"an event of cuda:{found.device} is recorded in a stream of cuda:{key[0]}")
        capture = self._captures.get(key)
        found.time = float(next(_handles))
        if capture is not None:
            found.captured = capture, capture.tails.get(key)
        else:
            found.captured = None
            found.task = SCHEDULE.enqueue(key, "a mark")

    def eventQuery(self, event: int) -> int:
        found = self._events[event]
        if found.captured is not None:
            raise CUDARuntimeError(900, "operation not permitted on an event of a capture")
        return 0 if SCHEDULE.is_done(found.task) else 600

    def eventSynchronize(self, event: int) -> None:
        found = self._events[event]
        if found.captured is not None:
            raise CUDARuntimeError(900, "operation not permitted on an event of a capture")
        SCHEDULE.wait_for(found.task)

    def eventElapsedTime(self, begin: int, end: int) -> float:
        return self._events[end].time - self._events[begin].time

    # ----- copies -----------------------------------------------------------------------------------------------------

    def memcpyAsync(self, target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        self._check(kind, target, source)
        reads, writes = Access(source, source + nbytes, False), Access(target, target + nbytes, True)
        if kind == 3:
            self.do(stream, "a copy", lambda: ctypes.memmove(target, source, nbytes), (reads, writes))
        elif kind == 1:
            self._upload(target, source, nbytes, stream, writes)
        else:
            self._download(target, source, nbytes, stream, reads)

    def _check(self, kind: int, target: int, source: int) -> None:
        on_device = [
            address for address, is_device in ((target, kind in (1, 3)), (source, kind in (2, 3))) if is_device
        ]
        for address in on_device:
            if self.device_of(address) != _here.device:
                raise CUDARuntimeError(700, f"cuda:{_here.device} is given memory of {self.device_of(address)}")

    def _upload(self, target: int, source: int, nbytes: int, stream: int, writes: Access) -> None:
        if self.device_of(source) == -1:
            task = self.do(stream, "a copy", lambda: ctypes.memmove(target, source, nbytes), (writes,))
            if task is not None and not task.done:
                SCHEDULE.hold_host_memory(task, source, nbytes, True)
        else:  # it has been read when the call returns
            staged = ctypes.string_at(source, nbytes)
            self.do(stream, "a copy", lambda: ctypes.memmove(target, staged, nbytes), (writes,))

    def _download(self, target: int, source: int, nbytes: int, stream: int, reads: Access) -> None:
        task = self.do(stream, "a copy", lambda: ctypes.memmove(target, source, nbytes), (reads,))
        if self.device_of(target) != -1:
            SCHEDULE.wait_for(task)
        elif task is not None and not task.done:
            SCHEDULE.hold_host_memory(task, target, nbytes, False)

    def memcpyPeerAsync(self, target: int, to: int, source: int, device: int, nbytes: int, stream: int) -> None:
        if (self.device_of(target), self.device_of(source)) != (to, device):
            raise CUDARuntimeError(700, f"a copy from cuda:{device} to cuda:{to} is about other memory")
        accesses = Access(source, source + nbytes, False), Access(target, target + nbytes, True)
        self.do(stream, "a copy between devices", lambda: ctypes.memmove(target, source, nbytes), accesses)

    def memsetAsync(self, target: int, value: int, nbytes: int, stream: int) -> None:
        self._check(1, target, 0)
        writes = (Access(target, target + nbytes, True),)
        self.do(stream, "a fill", lambda: ctypes.memset(target, value, nbytes), writes)

    def deviceCanAccessPeer(self, device: int, peer: int) -> int:
        return int(device != peer)

    # ----- graphs -----------------------------------------------------------------------------------------------------

    def streamBeginCapture(self, stream: int, mode: int) -> None:
        key = self.key(stream)
        self._forbid_in_capture(key)
        self._captures[key] = Capture(key)

    def streamEndCapture(self, stream: int) -> int:
        capture = self._captures[self.key(stream)]
        for key in [key for key, found in self._captures.items() if found is capture]:
            del self._captures[key]
        for event in tuple(self._events.values()):
            if event.captured is not None and event.captured[0] is capture:
                event.captured = event.task = None
        if not capture.joined():
            raise CUDARuntimeError(904, "capture was not joined to its origin: a stream's work is not waited for")
        handle = next(_handles)
        self._graphs[handle] = capture
        return handle

    def graphInstantiate(self, graph: int) -> int:
        handle = next(_handles)
        self._graphs[handle] = self._graphs[graph]
        return handle

    def graphLaunch(self, executable: int, stream: int) -> None:
        capture, key, number = self._graphs[executable], self.key(stream), next(self._launches)
        begin = SCHEDULE.enqueue(key, "the begin of a graph")
        tasks: dict[int, Task] = {}
        for node in capture.nodes:
            branch = key if node.key == capture.origin else (*key, number, node.key[1])
            waits = [tasks[id(each)] for each in node.waits] if node.waits else [begin]
            tasks[id(node)] = SCHEDULE.enqueue(branch, f"{node.what} of a graph", node.run, node.accesses, waits)

    def graphDebugDotPrint(self, graph: int, path: str, flags: int) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"digraph {{ {len(self._graphs[graph].nodes)} }}")

    def graphDestroy(self, graph: int) -> None:
        self._graphs.pop(graph, None)

    def graphExecDestroy(self, executable: int) -> None:
        self._graphs.pop(executable, None)


# ----- CuPy's module --------------------------------------------------------------------------------------------------


class Event:
    """CuPy's `cupy.cuda.Event`."""

    runtime: Runtime

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.ptr = self.runtime.eventCreateWithFlags(2 * disable_timing)

    def record(self, stream: Any = None) -> None:
        self.runtime.eventRecord(self.ptr, (get_current_stream() if stream is None else stream).ptr)

    @property
    def done(self) -> bool:
        return self.runtime.eventQuery(self.ptr) == 0

    def synchronize(self) -> None:
        self.runtime.eventSynchronize(self.ptr)

    def __del__(self) -> None:
        self.runtime.eventDestroy(self.ptr)


class Stream:
    """CuPy's `cupy.cuda.Stream`."""

    runtime: Runtime
    null: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False, priority: int = 0) -> None:
        self.device_id = -1 if null else _here.device
        self.ptr = 0 if null else self.runtime.new_stream()
        self.priority = priority

    @classmethod
    def from_external(cls, handle: Any) -> Stream:
        found = cls(null=True)
        found.ptr = handle.__cuda_stream__()[1]
        return found

    def use(self) -> Stream:
        if self.device_id not in (-1, _here.device):
            raise RuntimeError(f"a stream of cuda:{self.device_id} is used on cuda:{_here.device}")
        _here.streams[_here.device] = self
        return self

    def synchronize(self) -> None:
        self.runtime.streamSynchronize(self.ptr)

    @property
    def done(self) -> bool:
        return self.runtime.streamQuery(self.ptr)

    def wait_event(self, event: Event) -> None:
        self.runtime.streamWaitEvent(self.ptr, event.ptr)


class Device:
    """CuPy's `cupy.cuda.Device`."""

    runtime: Runtime

    def __init__(self, ordinal: int) -> None:
        self.id = ordinal
        self.attributes = {"MultiProcessorCount": 132, "MaxThreadsPerMultiProcessor": 2048}

    def synchronize(self) -> None:
        if any(key[0] == self.id for key in self.runtime._captures):
            raise CUDARuntimeError(900, "operation not permitted when stream is capturing")
        SCHEDULE.wait_for_device(self.id)


def get_current_stream() -> Stream:
    """The stream in use on the device of the thread."""
    return _here.streams.get(_here.device, Stream.null)


def get_elapsed_time(begin: Event, end: Event) -> float:
    """The time between two marks."""
    return Event.runtime.eventElapsedTime(begin.ptr, end.ptr)


def library(runtime: Runtime) -> Any:
    """What plays `cupy.cuda`."""
    Event.runtime = Stream.runtime = Device.runtime = runtime
    Stream.null = Stream(null=True)
    return SimpleNamespace(
        Event=Event, Stream=Stream, Device=Device, get_current_stream=get_current_stream,
        get_elapsed_time=get_elapsed_time, runtime=runtime,
    )  # fmt: skip
