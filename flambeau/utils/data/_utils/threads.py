"""Worker threads, as the main thread sees them."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any

from . import MP_STATUS_CHECK_INTERVAL
from .worker import Result, WorkerSetup, _thread_worker


class ThreadPool:
    """The worker threads of one iterator. They share the dataset, and results are handed over as they are."""

    def __init__(self, setups: list[WorkerSetup]) -> None:
        self._results: queue.SimpleQueue[Result] = queue.SimpleQueue()
        self._tasks: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in setups]
        self._threads: list[threading.Thread] = []
        self.closed = False
        try:
            for tasks, setup in zip(self._tasks, setups, strict=True):
                thread = threading.Thread(target=_thread_worker, args=(tasks, self._results, setup), daemon=True)
                thread.start()
                self._threads.append(thread)
        except BaseException:  # the system has no room for another one
            self.close()
            raise

    @property
    def processes(self) -> list[Any]:
        """The threads."""
        return list(self._threads)

    def submit(self, worker: int, task: int, index: Any) -> None:
        """Give a task to a worker."""
        self._tasks[worker].put((task, index))

    def begin_epoch(self, shared_seed: int | None) -> None:
        """Let every worker start its dataset's iterator again, without the tasks that it has not begun."""
        for tasks in self._tasks:
            _empty(tasks)
            tasks.put(())

    def receive(self, timeout: float) -> Result | None:
        """The next result of any worker; None if there is none for `timeout` seconds, where 0 means for ever."""
        try:
            return self._results.get(timeout=timeout or None)
        except queue.Empty:
            return None

    def check(self) -> None:
        """Threads do not end by themselves."""

    def content(self, result: Result) -> Any:
        """What a result holds."""
        return result.content

    def discard(self, result: Result) -> None:
        """Nobody wants this result."""

    def close(self) -> None:
        """End all workers after what they are doing; one that takes long is not waited for."""
        self.closed = True
        for tasks in self._tasks:
            _empty(tasks)
            tasks.put(None)
        deadline = time.monotonic() + MP_STATUS_CHECK_INTERVAL
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))


def _empty(tasks: queue.SimpleQueue[Any]) -> None:
    try:
        while True:
            tasks.get_nowait()
    except queue.Empty:
        pass
