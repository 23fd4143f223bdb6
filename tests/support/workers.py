"""Processes that work through tasks; one that ends or hangs is replaced, and its task reported."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

Work = Callable[[Any], Any]
Prepare = Callable[[], Work]


class Broken(NamedTuple):
    """In place of a result: why there is none."""

    reason: str


def _worker(channel: multiprocessing.connection.Connection, prepare: Prepare) -> None:
    work = prepare()
    channel.send(None)
    while (given := channel.recv()) is not None:
        channel.send(work(given[0]))


class Workers:
    """Processes that are each prepared once, by a function that gives the one which does a task.

    A single worker is this process itself, which a debugger can step through.
    """

    def __init__(self, jobs: int, prepare: Prepare, patience: float) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._prepare, self._jobs, self._patience = prepare, jobs, patience

    def results(self, tasks: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Each task with its result, or `Broken`, as they become ready; tasks are asked for one by one."""
        if self._jobs == 1:
            work = self._prepare()
            yield from ((task, work(task)) for task in tasks)
            return
        waiting = iter(tasks)
        busy: dict[Any, tuple[Any, Any, float]] = {}
        for _, task in zip(range(self._jobs), waiting, strict=False):
            self._give(*self._start(), task, busy)
        while busy:
            ready = multiprocessing.connection.wait(list(busy), timeout=5)
            for channel, (process, task, began) in list(busy.items()):
                if channel not in ready and time.monotonic() - began < self._patience:
                    continue
                del busy[channel]
                process, channel, result = self._answer(process, channel, channel in ready)
                yield task, result
                if (following := next(waiting, busy)) is not busy:
                    self._give(process, channel, following, busy)
                else:
                    channel.send(None)

    def _start(self) -> tuple[Any, multiprocessing.connection.Connection]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_worker, args=(theirs, self._prepare), daemon=True)
        process.start()
        theirs.close()
        ours.recv()
        return process, ours

    def _give(self, process: Any, channel: Any, task: Any, busy: dict[Any, Any]) -> None:
        channel.send((task,))
        busy[channel] = (process, task, time.monotonic())

    def _answer(self, process: Any, channel: Any, ready: bool) -> tuple[Any, Any, Any]:
        """A result, with the process that can do the next task."""
        if ready:
            try:
                return process, channel, channel.recv()
            except EOFError:
                process.join()
                reason = f"the process ended with exit code {process.exitcode}"
        else:
            process.kill()
            reason = f"no answer in {self._patience:.0f} s"
        return *self._start(), Broken(reason)
