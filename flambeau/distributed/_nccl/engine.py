"""The engine over NCCL, for tensors on GPUs: `init_process_group("nccl")`.

Collectives are put into a stream of their own, which waits for what the current stream holds; `Work.wait()` lets the
current stream wait in turn, and Python goes on. What is in the host's memory goes by the engine for hosts, so objects
and small numbers need no GPU. The communicator of a group is made by its first collective.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._backends.cuda.arrays.array import DeviceArray
from ..._core.process.caller import Place, calling_place, describe_place
from ...cuda._streams import Event, Stream
from .._engines import Engine, Pending
from .._errors import DistBackendError
from ..reductions import RedOpType
from .library import ID_LENGTH, TYPES, Library

_OPS = {RedOpType.SUM: 0, RedOpType.PRODUCT: 1, RedOpType.MAX: 2, RedOpType.MIN: 3, RedOpType.AVG: 4}
_BETWEEN_LOOKS = 0.0005


class _Started:
    """Something in the stream of collectives, up to a mark behind it."""

    def __init__(self, engine: NcclEngine, mark: Event, label: str, source: int) -> None:
        self._engine = engine
        self._mark = mark
        self._label = label
        self._source = source
        self._place: Place | None = calling_place()

    def is_done(self) -> bool:
        """Whether the GPU has done it."""
        return self._mark.query()

    def error(self) -> BaseException | None:
        """The error that ended the collective, or None."""
        text = self._engine.asynchronous_error()
        return None if text is None else DistBackendError(f"NCCL failed in {self._label}: {text}")

    def wait(self, limit: float | None = None) -> None:
        """Let the current stream wait for it; with a limit, this thread."""
        if limit is not None:
            end = time.monotonic() + limit
            while not self.is_done():
                if (error := self.error()) is not None:
                    raise error
                if time.monotonic() > end:
                    self._engine.abort()
                    raise DistBackendError(
                        f"Timed out: waited {limit:.3g} s in {self._label}, called at {describe_place(self._place)}"
                    )
                time.sleep(_BETWEEN_LOOKS)
        self._mark.wait()

    def attend(self) -> None:
        """The GPU needs no attention."""

    def when_done(self, callback: Callable[[], None]) -> None:
        """What is called back puts its work into a stream that waits."""
        self.wait()
        callback()

    def source(self) -> int:
        """The member from which a received message came."""
        return self._source

    def span(self) -> tuple[int, int] | None:
        """What the GPU does is in its own profile."""
        return None


def _is_on_device(array: Any) -> bool:
    return type(array) is DeviceArray


def _are_adjacent(arrays: Sequence[Any]) -> bool:
    """Whether arrays of one length lie one behind the other."""
    first = arrays[0]
    return all(
        each.nbytes == first.nbytes and each.pointer == first.pointer + index * first.nbytes
        for index, each in enumerate(arrays)
    )


class NcclEngine:
    """Collectives of one group: on a GPU by NCCL, on the host by another engine."""

    name = "nccl"

    def __init__(self, host: Engine, library: Library, number: int) -> None:
        self._host = host
        self._library = library
        self._number = number
        self._communicator = 0
        self._stream: Stream | None = None
        self._under_way: deque[tuple[Event, tuple[Any, ...]]] = deque()
        """Arrays that the GPU may still read or write."""
        self.rank, self.size = host.rank, host.size

    def takes(self, array: Any) -> bool:
        """Whether collectives run on such an array as it is."""
        return _is_on_device(array) or self._host.takes(array)

    def subgroup(self, ranks: Sequence[int], number: int, timeout: float) -> NcclEngine | None:
        """An engine for some of the members; None for those that are none of them."""
        host = self._host.subgroup(ranks, number, timeout)
        return None if host is None else NcclEngine(host, self._library, number)

    def close(self) -> None:
        """Leave the group and free its communicator."""
        if self._communicator:
            if self._stream is not None:
                self._stream.synchronize()
            self._library.call("CommDestroy", self._communicator)
            self._communicator = 0
        self._host.close()

    def abort(self) -> None:
        """Give up what is under way."""
        if self._communicator:
            self._library.call("CommAbort", self._communicator)
            self._communicator = 0

    def asynchronous_error(self) -> str | None:
        """What went wrong in something that was started."""
        return self._library.asynchronous_error(self._communicator) if self._communicator else None

    def progress(self) -> bool:
        """The GPU moves what is under way."""
        return True

    def empty(self, count: int, array_type: Any, passing: bool = False) -> Any:
        """A flat array of the host where collectives are quickest."""
        return self._host.empty(count, array_type, passing)

    # ----- how calls start ----------------------------------------------------------------------------------------

    def _ready(self) -> int:
        """The communicator: the members meet over the host."""
        if not self._communicator:
            word = np.zeros(ID_LENGTH, np.uint8)
            if self.rank == 0:
                word[:] = np.frombuffer(self._library.new_identity(), np.uint8)
            self._host.broadcast(word, 0).wait()
            self._communicator = self._library.communicator(word.tobytes(), self.size, self.rank)
        return self._communicator

    @contextlib.contextmanager
    def _enqueued(self, *arrays: Any) -> Iterator[tuple[int, int, Event]]:
        """The communicator, the stream, and the mark behind what is put into it meanwhile, as one."""
        communicator = self._ready()
        if self._stream is None:
            self._stream = Stream()
        before, mark = Event(), Event()
        before.record()
        self._stream.wait_event(before)
        self._library.call("GroupStart")
        try:
            yield communicator, self._stream.cuda_stream, mark
        finally:
            self._library.call("GroupEnd")
        mark.record(self._stream)
        while self._under_way and self._under_way[0][0].query():
            self._under_way.popleft()
        self._under_way.append((mark, arrays))

    def _started(self, mark: Event, kind: str, source: int | None = None) -> Pending:
        label = f"{kind} of group {self._number}"
        return _Started(self, mark, label, self.rank if source is None else source)

    def _type(self, array: Any, op: int) -> tuple[int, int, int]:
        """The library's number of the type, how many elements of it there are, and the number of the reduction."""
        member = RedOpType(op)
        if member not in _OPS:
            raise RuntimeError(f"Cannot use ReduceOp.{member.name} with NCCL")
        array_type, count = array.dtype, array.size
        if array_type.kind == "c":
            array_type, count = np.dtype(f"f{array_type.itemsize // 2}"), 2 * count
        if array_type.kind == "b" and member is RedOpType.SUM:
            member = RedOpType.MAX  # a sum of bytes would be neither true nor false
        if array_type.name not in TYPES:
            raise TypeError(f"NCCL cannot combine elements of the type {array_type.name}")
        return TYPES[array_type.name], count, _OPS[member]

    def _reduced(self, kind: str, array: Any, op: int, root: int | None) -> Pending:
        number, count, reduction = self._type(array, op)
        place = array.pointer
        with self._enqueued(array) as (communicator, stream, mark):
            if root is None:
                self._library.call("AllReduce", place, place, count, number, reduction, communicator, stream)
            else:
                self._library.call("Reduce", place, place, count, number, reduction, root, communicator, stream)
        return self._started(mark, kind)

    def _moved(self, kind: str, sends: Sequence[tuple[int, Any]], receives: Sequence[tuple[int, Any]]) -> Pending:
        """Messages in both directions, as bytes."""
        arrays = [array for _, array in (*sends, *receives)]
        with self._enqueued(*arrays) as (communicator, stream, mark):
            for name, messages in (("Send", sends), ("Recv", receives)):
                for peer, array in messages:
                    self._library.call(name, array.pointer, array.nbytes, 1, peer, communicator, stream)
        return self._started(mark, kind, receives[0][0] if receives else None)

    # ----- collectives --------------------------------------------------------------------------------------------

    def all_reduce(self, array: Any, op: int) -> Pending:
        """Combine the arrays of all members, on all of them."""
        if not _is_on_device(array):
            return self._host.all_reduce(array, op)
        return self._reduced("all_reduce", array, op, None)

    def reduce(self, array: Any, root: int, op: int) -> Pending:
        """Combine the arrays of all members, on one of them."""
        if not _is_on_device(array):
            return self._host.reduce(array, root, op)
        return self._reduced("reduce", array, op, root)

    def broadcast(self, array: Any, root: int) -> Pending:
        """The array of one member, on all of them."""
        if not _is_on_device(array):
            return self._host.broadcast(array, root)
        with self._enqueued(array) as (communicator, stream, mark):
            self._library.call("Broadcast", array.pointer, array.pointer, array.nbytes, 1, root, communicator, stream)
        return self._started(mark, "broadcast")

    def all_gather(self, outs: Sequence[Any], own: Any) -> Pending:
        """The arrays of all members, on all of them."""
        if not _is_on_device(own):
            return self._host.all_gather(outs, own)
        if not _are_adjacent(outs):
            everyone = range(self.size)
            return self._moved("all_gather", [(peer, own) for peer in everyone], list(enumerate(outs)))
        with self._enqueued(*outs, own) as (communicator, stream, mark):
            self._library.call("AllGather", own.pointer, outs[0].pointer, own.nbytes, 1, communicator, stream)
        return self._started(mark, "all_gather")

    def gather(self, outs: Sequence[Any] | None, own: Any, root: int) -> Pending:
        """The arrays of all members, on one of them."""
        if not _is_on_device(own):
            return self._host.gather(outs, own, root)
        return self._moved("gather", [(root, own)], list(enumerate(outs or ())))

    def scatter(self, out: Any, inputs: Sequence[Any] | None, root: int) -> Pending:
        """The arrays of one member, one for each."""
        if not _is_on_device(out):
            return self._host.scatter(out, inputs, root)
        return self._moved("scatter", list(enumerate(inputs or ())), [(root, out)])

    def reduce_scatter(self, out: Any, inputs: Sequence[Any], op: int) -> Pending:
        """Combine the n-th arrays of all members on the n-th member."""
        if not _is_on_device(out):
            return self._host.reduce_scatter(out, inputs, op)
        number, count, reduction = self._type(out, op)
        with self._enqueued(out, *inputs) as (communicator, stream, mark):
            tail = (number, reduction, communicator, stream)
            if _are_adjacent(inputs):
                self._library.call("ReduceScatter", inputs[0].pointer, out.pointer, count, *tail)
            else:
                for root, array in enumerate(inputs):
                    count = self._type(array, op)[1]
                    self._library.call(
                        "Reduce", array.pointer, out.pointer, count, number, reduction, root, communicator, stream
                    )
        return self._started(mark, "reduce_scatter")

    def all_to_all(self, outs: Sequence[Any], inputs: Sequence[Any]) -> Pending:
        """The n-th member gets the n-th array of each."""
        if not _is_on_device(inputs[0]):
            return self._host.all_to_all(outs, inputs)
        return self._moved("all_to_all", list(enumerate(inputs)), list(enumerate(outs)))

    def barrier(self) -> Pending:
        """Nobody goes on before everybody has come."""
        return self._host.barrier()

    def send(self, array: Any, peer: int, tag: int) -> Pending:
        """Send a message to a member; NCCL has no tags, and keeps the order."""
        return self._moved("send", [(peer, array)], ()) if _is_on_device(array) else self._host.send(array, peer, tag)

    def receive(self, array: Any, peer: int | None, tag: int) -> Pending:
        """Receive a message from a member."""
        if not _is_on_device(array):
            return self._host.receive(array, peer, tag)
        if peer is None:
            raise RuntimeError("NCCL receives from a member that is named: recv() needs a source for tensors on a GPU")
        return self._moved("receive", (), [(peer, array)])

    def absent_members(self, limit: float, wait_all: bool) -> list[int]:
        """A barrier with a look at the clock: on the first member, those that did not come."""
        return self._host.absent_members(limit, wait_all)
