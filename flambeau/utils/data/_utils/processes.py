"""Worker processes, as the main process sees them."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import socket
import time
from collections import deque
from multiprocessing import connection
from typing import Any, NoReturn

from ...._core.process.collector import collector_paused
from . import MP_STATUS_CHECK_INTERVAL
from .shared import Luggage, Mapped
from .signal_handling import describe_death
from .worker import Result, WorkerSetup, _process_worker

ROOM = 1 << 18
"""How many bytes a connection is asked to take before somebody reads them."""
MOST_QUEUED = 1 << 16
"""How many bytes of tasks wait in a connection. More could fill it while the worker's results fill the other way."""
MESSAGE_COST = 1 << 10
"""What a message takes in a connection beside its bytes, and generously: a system keeps a record of each."""


def _widen(end: Any) -> None:
    """Let a connection take `ROOM` bytes each way; some systems give only a few thousand unasked."""
    if hasattr(socket, "AF_UNIX"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(end.fileno())) as channel:
            channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ROOM)


class _Process:
    """One worker process with its connection and what of its memory is mapped here."""

    def __init__(self, context: Any, worker: int, setup: Any, older: list[Any]) -> None:
        self.worker = worker
        self.connection, theirs = context.Pipe(duplex=True)
        _widen(self.connection)
        _widen(theirs)
        forked = context.get_start_method() == "fork"
        inherited = [*older, self.connection] if forked else []
        started = theirs, setup, inherited, gc.isenabled()
        self.process = context.Process(target=_process_worker, args=started, daemon=True)
        with collector_paused():  # a worker must not collect, and so finish, what the main process has dropped
            self.process.start()
        theirs.close()
        self.mapped = Mapped()
        self.waiting: deque[tuple[int, Any]] = deque()
        self.queued: deque[int] = deque()
        self.epoch: tuple[int, int | None] = (0, None)

    def submit(self, task: int, index: Any) -> None:
        self.waiting.append((task, index))
        self.flush()

    def flush(self) -> None:
        """Send tasks as long as they find room.

        Sending to a full connection would wait for the worker, which may be waiting for its results to be read. So a
        task that is too large to wait beside others is sent to a worker that has none.
        """
        while self.waiting:
            freed = self.mapped.take_freed()
            # What `Connection.send` does; typeshed leaves it out.
            message = connection._ForkingPickler.dumps((self.epoch, *self.waiting[0], freed))  # type: ignore[attr-defined]
            cost = len(message) + MESSAGE_COST
            if self.queued and sum(self.queued) + cost > MOST_QUEUED:
                self.mapped.keep_freed(freed)  # to be told with a later task
                return
            self.waiting.popleft()
            self.queued.append(cost)
            self.connection.send_bytes(message)

    def receive(self) -> Result:
        result: Result
        result, sizes, retired = self.connection.recv()
        if sizes:
            with socket.socket(fileno=os.dup(self.connection.fileno())) as channel:
                for number, size in sizes:
                    _, files, _, _ = socket.recv_fds(channel, 1, 1)
                    if not files:
                        raise EOFError
                    self.mapped.add(number, size, files[0])
        self.mapped.forget(retired)
        self.queued.popleft()
        self.flush()
        return result

    def hang_up(self) -> None:
        """End the connection, also where processes that were forked later hold a copy of this end of it."""
        if hasattr(socket, "AF_UNIX"):
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self.connection.fileno())) as channel:
                channel.shutdown(socket.SHUT_RDWR)
        self.connection.close()


class _Talk:
    """A context in which a worker is talked to: an error in it ends all workers.

    No generator: on Python 3.12 its frame holds the error, whose traceback holds the frame, and with it the iterator,
    until the next garbage collection.
    """

    __slots__ = ("_pool", "_worker")

    def __init__(self, pool: ProcessPool, worker: _Process) -> None:
        self._pool, self._worker = pool, worker

    def __enter__(self) -> None:
        self._pool.check_open()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is not None:
            self._pool.end(self._worker, error)


class ProcessPool:
    """The worker processes of one iterator."""

    def __init__(self, context: Any, setups: list[WorkerSetup]) -> None:
        self._owner = os.getpid()
        self._processes: list[_Process] = []
        self.closed = False
        self._reason = "the workers of this DataLoader iterator have ended"
        luggage = None
        first = setups[0]
        if context.get_start_method() != "fork":
            luggage = Luggage((first.dataset, first.make_fetcher, first.init_fn))
        try:
            for setup in setups:
                packed: Any = setup
                if luggage is not None:
                    packed = luggage, setup._replace(dataset=None, make_fetcher=type(None), init_fn=None)
                older = [each.connection for each in self._processes]
                self._processes.append(_Process(context, setup.worker, packed, older))
        except BaseException:
            self.close()
            raise
        finally:
            if luggage is not None:
                luggage.close()
        self._waited = {each.connection: each for each in self._processes}
        self._waited.update({each.process.sentinel: each for each in self._processes})

    @property
    def processes(self) -> list[Any]:
        """The processes."""
        return [each.process for each in self._processes]

    def submit(self, worker: int, task: int, index: Any) -> None:
        """Give a task to a worker."""
        with _Talk(self, self._processes[worker]):
            self._processes[worker].submit(task, index)

    def begin_epoch(self, shared_seed: int | None) -> None:
        """Let every worker start its dataset's iterator again, after the tasks that it has."""
        for each in self._processes:
            each.waiting.clear()
            each.epoch = (
                each.epoch[0] + 1,
                shared_seed,
            )  # the next task says so: a message of its own could find the connection full

    def receive(self, timeout: float) -> Result | None:
        """The next result of any worker; None if there is none for `timeout` seconds, where 0 means to wait for ever.

        A worker that has ended is reported at once.
        """
        deadline = time.monotonic() + timeout if timeout > 0 else None
        while True:
            self.check_open()
            patience = MP_STATUS_CHECK_INTERVAL
            if deadline is not None:
                patience = min(patience, max(0.0, deadline - time.monotonic()))
            ready = connection.wait(list(self._waited), patience)
            for each in self._processes:
                if each.process.sentinel in ready or (not ready and not each.process.is_alive()):
                    self._report_death(each)
            if ready:
                found = self._waited[ready[0]]
                with _Talk(self, found):
                    return found.receive()
            if deadline is not None and time.monotonic() >= deadline:
                return None

    def check(self) -> None:
        """Report a worker that has ended."""
        for sentinel in connection.wait([each.process.sentinel for each in self._processes], 0):
            self._report_death(self._waited[sentinel])

    def content(self, result: Result) -> Any:
        """What a result holds."""
        return self._processes[result.worker].mapped.unpack(result.content)

    def discard(self, result: Result) -> None:
        """Nobody wants this result."""
        self._processes[result.worker].mapped.discard(result.content)

    def end(self, worker: _Process, error: BaseException) -> None:
        """End all workers: one cannot be talked to, and nobody knows where in a message its connection is."""
        if isinstance(error, (ConnectionError, EOFError)):
            self._report_death(worker)
        if isinstance(error, OSError):
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._reason = (
                    "Too many open files. Communication with the workers is no longer possible: raise the limit with "
                    "`ulimit -n`, or hold fewer batches at a time"
                )
            else:
                self._reason = f"DataLoader cannot communicate with worker {worker.worker}: {error}"
            self.close()
            raise RuntimeError(self._reason) from error
        self.close()

    def check_open(self) -> None:
        """Say why the workers have ended, if they have."""
        if self.closed:
            raise RuntimeError(self._reason)

    def _report_death(self, dead: _Process) -> NoReturn:
        dead.process.join(MP_STATUS_CHECK_INTERVAL)
        self._reason = describe_death(dead.worker, dead.process)
        self.close()
        raise RuntimeError(self._reason)

    def close(self) -> None:
        """End all workers: by closing their connections; those still busy after a while, by signals."""
        if self.closed or self._owner != os.getpid():  # a forked process must not end its parent's workers
            return
        self.closed = True
        try:
            for each in self._processes:
                each.hang_up()
            self._join(MP_STATUS_CHECK_INTERVAL)
            for each in self._processes:
                if each.process.is_alive():
                    each.process.terminate()
            self._join(1.0)
        finally:  # also if the user interrupts the waiting
            for each in self._processes:
                if each.process.is_alive():
                    each.process.kill()
                each.process.join()

    def _join(self, patience: float) -> None:
        deadline = time.monotonic() + patience
        for each in self._processes:
            each.process.join(max(0.0, deadline - time.monotonic()))
