"""What runs in a worker, process or thread."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import socket
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from . import MP_STATUS_CHECK_INTERVAL, pipes, shared
from .randomness import _RNG, ProcessRandomness, ThreadRandomness, entropy, seed_process

MULTIPROCESSING = "multiprocessing"
THREAD = "thread"


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a dataset may ask about the worker that it runs in: its number, how many there are, its seed, its copy."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: _RNG | None = None
    worker_method: str | None = MULTIPROCESSING


class _Here(threading.local):
    info: WorkerInfo | None = None


_HERE = _Here()
_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The worker in which this is called, or None in the main process.

    Returns:
        its `id`, `num_workers`, `seed` and `dataset`.

    Example:
        >>> torch.utils.data.get_worker_info() is None
        True
    """
    return _HERE.info or _worker_info


class WorkerSetup(NamedTuple):
    """Everything that a worker is told once."""

    worker: int
    num_workers: int
    base_seed: int
    dataset: Any
    make_fetcher: Callable[[Any], Any]
    init_fn: Callable[[int], Any] | None
    skip: list[Any]
    """The indices of batches to leave out, which an earlier run has had."""
    random_state: tuple[Any, ...] | None
    """Where its random numbers stood after these."""
    shared_seed: int | None
    """The seed of the orders of a pipe, the same for all workers."""


DATA, END, FAILURE = range(3)


class Result(NamedTuple):
    """A worker's answer to one task: the batch, or that its iterator has ended, or an error."""

    worker: int
    task: int
    kind: int
    content: Any
    random_state: tuple[Any, ...] | None
    """The worker's random states after this task, if they have changed."""


class _Text(str):
    """Text that a KeyError, which shows the repr of its argument, shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Failure:
    """An exception in a worker, in a form that can be sent to the main process."""

    def __init__(self, error: BaseException, place: str, failing: str) -> None:
        kind = type(error)
        doing = f"It was loading {failing}.\n" if failing else ""
        original = "".join(traceback.format_exception(error))
        self.message = f"Caught {kind.__name__} {place}.\n{doing}Original {original}"
        try:
            pickle.dumps(kind)
            self.kind: type[BaseException] = kind
        except Exception:  # a class that exists only inside a function
            self.kind = RuntimeError

    def reraise(self) -> NoReturn:
        """Raise an exception of the same type; a RuntimeError if that type is not made from a message."""
        try:
            error = self.kind(_Text(self.message) if issubclass(self.kind, KeyError) else self.message)
        except Exception:
            raise RuntimeError(self.message) from None
        raise error


class Worker:
    """The part that is the same in processes and threads: seeds, set up, then one answer for each task."""

    def __init__(self, setup: WorkerSetup, randomness: ProcessRandomness | ThreadRandomness, place: str) -> None:
        self.setup = setup
        self.place = f"in DataLoader worker {place} {setup.worker}"
        self.randomness = randomness
        self.fetcher: Any = None
        self.failure: Failure | None = None

    def prepare(self) -> None:
        """Run the user's function, begin the first epoch, and continue where an earlier run was."""
        try:
            if self.setup.shared_seed is not None:
                pipes.take_share(self.setup.dataset, self.setup.num_workers, self.setup.worker)
            if self.setup.init_fn is not None:
                self.setup.init_fn(self.setup.worker)
        except Exception as error:
            self.failure = Failure(error, self.place, "nothing yet: worker_init_fn failed")
            return
        self.begin_epoch(self.setup.shared_seed)
        if self.failure is None:
            try:
                for index in self.setup.skip:
                    self.fetcher.skip(index)
            except Exception as error:
                self.failure = Failure(error, self.place, self.fetcher.failing)
        if self.setup.random_state is not None:
            self.randomness.restore(self.setup.random_state)

    def begin_epoch(self, shared_seed: int | None) -> None:
        """Start the dataset's iterator again, if it has one."""
        try:
            pipes.begin_epoch(self.setup.dataset, shared_seed)
            self.fetcher = self.setup.make_fetcher(self.setup.dataset)
        except Exception as error:
            self.failure = Failure(error, self.place, "the first sample: iter(dataset) failed")

    def answer(self, task: int, index: Any) -> Result:
        """Fetch what one task asks for, as a result to send back."""
        kind, content = self._do(index)
        return Result(self.setup.worker, task, kind, content, self.randomness.changed())

    def _do(self, index: Any) -> tuple[int, Any]:
        if self.failure is not None:
            failure, self.failure = self.failure, None
            return FAILURE, failure
        if self.fetcher is None:  # it could not be set up, which has been reported
            return END, None
        try:
            return DATA, self.fetcher.fetch(index)
        except StopIteration as error:
            if hasattr(self.fetcher, "dataset_iter"):
                self.fetcher.ended = True
                return END, None
            return FAILURE, Failure(error, self.place, self.fetcher.failing)
        except Exception as error:
            return FAILURE, Failure(error, self.place, self.fetcher.failing)


# Processes ------------------------------------------------------------------------------------------------------------


def _process_worker(connection: Any, setup: Any, inherited: list[Any], collects: bool) -> None:
    """The life of a worker process: tasks come and results go through `connection` until that is closed.

    `inherited` are the main process's ends of the connections to this and to older workers, which a forked process has
    too: closed here, so that each connection ends with the main process. `collects` says whether garbage is collected,
    which a forked process does not do before this.
    """
    gc.freeze()  # what was inherited stays untouched, and so in memory that the processes have in common
    (gc.enable if collects else gc.disable)()  # a process that was not forked collects at first
    for other in inherited:
        other.close()
    if not isinstance(setup, WorkerSetup):
        luggage, own = setup
        dataset, make_fetcher, init_fn = luggage.unpack()
        setup = own._replace(dataset=dataset, make_fetcher=make_fetcher, init_fn=init_fn)
    # The main process may have ended, or been interrupted as well.
    with contextlib.suppress(KeyboardInterrupt, EOFError, BrokenPipeError, ConnectionResetError):
        _serve(connection, setup)


def _serve(connection: Any, setup: WorkerSetup) -> None:
    global _worker_info
    from .... import set_num_threads

    set_num_threads(1)
    seed_process(setup.base_seed, setup.worker)
    seed = setup.base_seed + setup.worker
    _worker_info = WorkerInfo(setup.worker, setup.num_workers, seed, setup.dataset)
    arena = shared.open_arena()
    worker = Worker(setup, ProcessRandomness(), "process")
    worker.prepare()
    parent = os.getppid()
    current: tuple[int, int | None] = (0, None)
    while True:
        while not connection.poll(MP_STATUS_CHECK_INTERVAL):
            if os.getppid() != parent:  # a process without parent is adopted
                return
        epoch, task, index, freed = connection.recv()
        if epoch != current:
            current = epoch
            worker.begin_epoch(epoch[1])
        if arena is not None:
            arena.give_back(freed)
        _send(connection, worker.answer(task, index), worker, arena)


def _send(connection: Any, result: Result, worker: Worker, arena: shared.Arena | None) -> None:
    """Send a result, after the files of the blocks of memory that are new in it."""
    try:
        parcel = shared.pack(result.content, arena)
    except Exception as error:
        failure = Failure(error, worker.place, f"{worker.fetcher.failing or 'a batch'}; the batch cannot be pickled")
        result = result._replace(kind=FAILURE, content=failure)
        parcel = shared.pack(failure, arena)
    new = arena.unsent() if arena is not None else []
    retired = arena.retire() if arena is not None else []
    sizes = [(block.number, block.size) for block in new]
    connection.send((result._replace(content=parcel), sizes, retired))
    if new:
        with socket.socket(fileno=os.dup(connection.fileno())) as channel:
            for block in new:
                socket.send_fds(channel, [b"f"], [block.descriptor])
                os.close(block.descriptor)
                block.descriptor = -1


# Threads --------------------------------------------------------------------------------------------------------------


def _thread_worker(tasks: Any, results: Any, setup: WorkerSetup) -> None:
    """The life of a worker thread: like a process's, with queues, until there is a None among the tasks."""
    randomness = ThreadRandomness(setup.base_seed, setup.worker)
    seed = setup.base_seed + setup.worker
    _HERE.info = WorkerInfo(setup.worker, setup.num_workers, seed, setup.dataset, randomness.rng, THREAD)
    worker = Worker(setup, randomness, "thread")
    worker.prepare()
    while (message := tasks.get()) is not None:
        if message == ():
            worker.begin_epoch(None)
            continue
        task, index = message
        try:
            results.put(worker.answer(task, index))
        except BaseException as error:  # a thread that just ended would leave the main thread waiting for ever
            failure = Failure(error, worker.place, worker.fetcher.failing)
            results.put(Result(setup.worker, task, FAILURE, failure, None))


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The four numbers that seed NumPy in a worker."""
    return [int(each) for each in entropy(base_seed, worker_id).generate_state(4)]
