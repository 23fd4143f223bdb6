"""The engine over MPI (mpi4py), for programs that `mpiexec` started: `init_process_group("mpi")`.

MPI joins only processes that it has started together. It says nothing of a process that is gone, and has no timeouts:
what waits too long is told so, but MPI itself cannot go on afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.process.caller import Place, calling_place, describe_place
from ._errors import DistBackendError
from .reductions import ReduceOp, combiner, finish

_BETWEEN_LOOKS = 0.0002
_TAGS = 32767
"""Tags that every MPI has."""


def _mpi() -> Any:
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise RuntimeError(
            "the backend 'mpi' needs mpi4py and an MPI library: pip install 'flambeau[mpi]', and start the program "
            f"with mpiexec ({error})"
        ) from error
    return MPI


class _Started:
    """MPI's requests of one call."""

    def __init__(self, requests: list[Any], label: str, limit: float, place: Place | None) -> None:
        self._requests = requests
        self._label = label
        self._limit = limit
        self._place = place
        self._status = _mpi().Status()
        self._done = False
        self._began = self._ended = time.perf_counter_ns()
        self._error: BaseException | None = None
        self.after: Callable[[], None] | None = None
        self._callbacks: list[Callable[[], None]] = []

    def is_done(self) -> bool:
        """Whether it is over, well or not."""
        if not self._done:
            try:
                over = all(each.Test(self._status) for each in self._requests)
            except Exception as error:
                self._error, over = DistBackendError(f"MPI failed in {self._label}: {error}"), True
            if over:
                self._finish()
        return self._done

    def _finish(self) -> None:
        self._done = True
        self._ended = time.perf_counter_ns()
        if self.after is not None and self._error is None:
            self.after()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def error(self) -> BaseException | None:
        """The error that ended the collective, or None."""
        return self._error

    def wait(self, limit: float | None = None) -> None:
        """Wait until it is over; what went wrong is raised."""
        allowed = self._limit if limit is None else limit
        end = time.monotonic() + allowed
        while not self.is_done():
            if time.monotonic() > end:
                self._error = DistBackendError(
                    f"Timed out: waited {allowed:.3g} s in {self._label}, called at {describe_place(self._place)}"
                )
                self._finish()
            time.sleep(_BETWEEN_LOOKS)
        if self._error is not None:
            raise self._error

    def attend(self) -> None:
        """MPI goes on when it is asked: nothing to be done."""

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call back when it is over, from whoever asks whether it is."""
        self._callbacks.append(callback)
        self.wait()

    def source(self) -> int:
        """The member from which a received message came."""
        return int(self._status.Get_source())

    def span(self) -> tuple[int, int] | None:
        """When it began, and when it was seen to be over."""
        return (self._began, self._ended) if self._done else None


class MPIEngine:
    """Collectives of one communicator."""

    name = "mpi"

    def __init__(self, communicator: Any, timeout: float, number: int = 0) -> None:
        self._communicator = communicator
        self._timeout = timeout
        self._number = number
        self.rank: int = communicator.Get_rank()
        self.size: int = communicator.Get_size()

    @staticmethod
    def whole(timeout: float) -> MPIEngine:
        """All processes that `mpiexec` started."""
        return MPIEngine(_mpi().COMM_WORLD, timeout)

    def takes(self, array: Any) -> bool:
        """Whether collectives run on such an array as it is."""
        return type(array) is np.ndarray

    def progress(self) -> bool:
        """MPI moves what is under way when it is asked for it."""
        return False

    def empty(self, count: int, array_type: np.dtype[Any], passing: bool = False) -> Any:
        """A flat array of the host, not initialised."""
        return np.empty(count, array_type)

    def subgroup(self, ranks: Sequence[int], number: int, timeout: float) -> MPIEngine | None:
        """An engine for some of the members; None for those that are none of them."""
        inside = self.rank in ranks
        key = list(ranks).index(self.rank) if inside else 0
        made = self._communicator.Split(0 if inside else _mpi().UNDEFINED, key)
        return MPIEngine(made, timeout, number) if inside else None

    def close(self) -> None:
        """Leave; MPI itself ends with the process."""
        if self._number:
            self._communicator.Free()

    def _started(self, label: str, *requests: Any) -> _Started:
        return _Started(list(requests), label, self._timeout, calling_place())

    def _combined(self, label: str, array: Any, op: int, root: int | None) -> _Started:
        """A reduction of what MPI has types for, or, of other types, a gathering that is reduced here."""
        mpi = _mpi()
        known = {
            ReduceOp.SUM: mpi.SUM, ReduceOp.AVG: mpi.SUM, ReduceOp.PRODUCT: mpi.PROD, ReduceOp.MIN: mpi.MIN,
            ReduceOp.MAX: mpi.MAX, ReduceOp.BAND: mpi.BAND, ReduceOp.BOR: mpi.BOR, ReduceOp.BXOR: mpi.BXOR,
        }  # fmt: skip
        combine = combiner(op, array.dtype)
        here = root is None or root == self.rank
        if array.dtype.kind in "iufc" and array.dtype.itemsize >= (4 if array.dtype.kind == "f" else 1):
            if root is None:
                request = self._communicator.Iallreduce(mpi.IN_PLACE, array, known[ReduceOp.RedOpType(op)])
            else:
                given = (mpi.IN_PLACE, array) if here else (array, None)
                request = self._communicator.Ireduce(*given, known[ReduceOp.RedOpType(op)], root)
            started = self._started(label, request)
            started.after = lambda: finish(array, op, self.size) if here else None
            return started
        spaces = np.empty((self.size, array.size), array.dtype)
        started = self._started(label, self._communicator.Iallgather(_bytes(array), _bytes(spaces)))

        def reduce_here() -> None:
            if here:
                np.copyto(array, spaces[0])
                for row in spaces[1:]:
                    combine(array, row)
                finish(array, op, self.size)

        started.after = reduce_here
        return started

    def all_reduce(self, array: Any, op: int) -> _Started:
        """Combine the arrays of all members, on all of them."""
        return self._combined("all_reduce", array, op, None)

    def reduce(self, array: Any, root: int, op: int) -> _Started:
        """Combine the arrays of all members, on one of them."""
        return self._combined("reduce", array, op, root)

    def broadcast(self, array: Any, root: int) -> _Started:
        """The array of one member, on all of them."""
        return self._started("broadcast", self._communicator.Ibcast(_bytes(array), root))

    def all_gather(self, outs: Sequence[Any], own: Any) -> _Started:
        """The arrays of all members, on all of them."""
        return self.all_to_all(outs, [own] * self.size)

    def gather(self, outs: Sequence[Any] | None, own: Any, root: int) -> _Started:
        """The arrays of all members, on one of them."""
        spaces = np.empty((self.size, own.size), own.dtype) if outs is not None else None
        into = None if spaces is None else _bytes(spaces)
        started = self._started("gather", self._communicator.Igather(_bytes(own), into, root))

        def store() -> None:
            if outs is not None and spaces is not None:
                for out, row in zip(outs, spaces, strict=True):
                    np.copyto(out, row)

        started.after = store
        return started

    def scatter(self, out: Any, inputs: Sequence[Any] | None, root: int) -> _Started:
        """The arrays of one member, one for each."""
        given = None if inputs is None else _bytes(np.concatenate(list(inputs)))
        return self._started("scatter", self._communicator.Iscatter(given, _bytes(out), root))

    def reduce_scatter(self, out: Any, inputs: Sequence[Any], op: int) -> _Started:
        """Combine the n-th arrays of all members on the n-th member."""
        whole = np.concatenate(list(inputs))
        started = self._combined("reduce_scatter", whole, op, None)
        divide, start = started.after, sum(each.size for each in inputs[: self.rank])

        def take_part() -> None:
            if divide is not None:
                divide()
            np.copyto(out, whole[start : start + out.size])

        started.after = take_part
        return started

    def all_to_all(self, outs: Sequence[Any], inputs: Sequence[Any]) -> _Started:
        """The n-th member gets the n-th array of each."""
        given = np.concatenate([_bytes(each) for each in inputs])
        space = np.empty(sum(each.nbytes for each in outs), np.uint8)
        sent = [given, [each.nbytes for each in inputs]]
        request = self._communicator.Ialltoallv(sent, [space, [each.nbytes for each in outs]])
        started = self._started("all_to_all", request)

        def store() -> None:
            start = 0
            for out in outs:
                np.copyto(_bytes(out), space[start : start + out.nbytes])
                start += out.nbytes

        started.after = store
        return started

    def barrier(self) -> _Started:
        """Nobody goes on before everybody has come."""
        return self._started("barrier", self._communicator.Ibarrier())

    def send(self, array: Any, peer: int, tag: int) -> _Started:
        """Send a message to a member."""
        return self._started(f"send to rank {peer}", self._communicator.Isend(_bytes(array), peer, tag % _TAGS))

    def receive(self, array: Any, peer: int | None, tag: int) -> _Started:
        """Receive a message from a member, or from whoever sends first."""
        source = _mpi().ANY_SOURCE if peer is None else peer
        return self._started(f"receive from {peer}", self._communicator.Irecv(_bytes(array), source, tag % _TAGS))

    def absent_members(self, limit: float, wait_all: bool) -> list[int]:
        """A barrier; who did not come, MPI does not say."""
        self.barrier().wait(limit)
        return []


def _bytes(array: Any) -> Any:
    return array.reshape(-1).view(np.uint8)
