"""One function in several processes, under the names of `torch.multiprocessing.spawn`."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

from .._core.process.platform import refuse_in_browser

__all__ = [
    "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext", "spawn",
    "start_processes",
]  # fmt: skip


class ProcessException(Exception):
    """A process failed."""

    __slots__ = ["error_index", "error_pid"]

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = self.pid = pid


class ProcessRaisedException(ProcessException):
    """A process raised an error."""


class ProcessExitedException(ProcessException):
    """A process ended with a code other than 0, or by a signal."""

    __slots__ = ["exit_code"]

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name


def _run(fn: Callable[..., Any], number: int, args: tuple[Any, ...], report: str) -> None:
    try:
        fn(number, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        with open(report, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """The processes that were started."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: number for number, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The process numbers of all processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for some of them to end; True once all have. An error in one ends all, and is raised here."""
        if not self.sentinels:
            return True
        failed: int | None = None
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout=timeout):
            number = self.sentinels.pop(sentinel)
            self.processes[number].join()
            if self.processes[number].exitcode != 0:
                failed = number
                break
        if failed is None:
            return not self.sentinels
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join(grace_period)
        process = self.processes[failed]
        if not os.path.exists(self.error_files[failed]):
            code = process.exitcode
            if code < 0:
                name = signal.Signals(-code).name
                message = f"process {failed} terminated with signal {name}"
                raise ProcessExitedException(message, failed, process.pid, code, name)
            raise ProcessExitedException(
                f"process {failed} terminated with exit code {code}", failed, process.pid, code
            )
        with open(self.error_files[failed], "rb") as file:
            original = pickle.load(file)
        message = f"\n\n-- Process {failed} terminated with the following error:\n{original}"
        raise ProcessRaisedException(message, failed, process.pid)


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(number, *args)` in `nprocs` processes; with `join`, wait until all are done."""
    refuse_in_browser("Processes", "call the function itself")
    method: Any = multiprocessing.get_context(start_method)
    folder = tempfile.mkdtemp(prefix="flambeau-processes-")
    processes, reports = [], []
    for number in range(nprocs):
        report = os.path.join(folder, f"{number}.pickle")
        process = method.Process(target=_run, args=(fn, number, args, report), daemon=daemon)
        process.start()
        processes.append(process)
        reports.append(report)
    context = ProcessContext(processes, reports)
    if not join:
        return context
    while not context.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Start processes that run a function, each a fresh Python."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
