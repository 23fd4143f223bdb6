"""Starting some processes, watching them, and ending them all if one fails."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from .errors import ProcessFailure, record
from .logs import DefaultLogsSpecs, LogsDest, LogsSpecs, Std, to_map
from .subprocess_handler import SubprocessHandler, get_subprocess_handler
from .tail_log import TailLog

__all__ = [
    "DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "PContext", "RunProcsResult",
    "SignalException", "Std", "SubprocessContext", "to_map",
]  # fmt: skip

_SIGNALS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"


class SignalException(Exception):
    """A signal that wants the end of this process; the processes that it has started are to end too."""

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


def _raise_signal(number: int, frame: FrameType | None) -> None:
    sigval = signal.Signals(number)
    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)


@dataclass
class RunProcsResult:
    """How processes have ended, by local rank: what functions returned, what failed, and where the streams are."""

    return_values: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, ProcessFailure] = field(default_factory=dict)
    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """Whether any has failed."""
        return bool(self.failures)


class PContext(ABC):
    """Some processes that are watched together."""

    def __init__(
        self,
        name: str,
        entrypoint: Callable[..., Any] | str,
        args: dict[int, tuple[Any, ...]],
        envs: dict[int, dict[str, str]],
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
        duplicate_stdout_filters: list[str] | None = None,
        duplicate_stderr_filters: list[str] | None = None,
    ) -> None:
        self.name = name
        for what, given in (("args", args), ("envs", envs)):
            if set(given) != set(range(len(args))):
                raise RuntimeError(f"{what}, local rank mapping mismatch, expected: {set(range(len(args)))}, actual: {set(given)}")  # noqa: E501  # fmt: skip
        self.nprocs = len(args)
        self.entrypoint, self.args, self.envs = entrypoint, args, envs
        logs = logs_specs.reify(envs)
        self.stdouts, self.stderrs, self.error_files = logs.stdouts, logs.stderrs, logs.error_files
        self._tails = [
            TailLog(name, logs.tee_stdouts, sys.stdout, log_line_prefixes),
            TailLog(name, logs.tee_stderrs, sys.stderr, log_line_prefixes),
        ]
        for filters, files, target in (
            (duplicate_stdout_filters, logs.tee_stdouts, logs.filtered_stdout),
            (duplicate_stderr_filters, logs.tee_stderrs, logs.filtered_stderr),
        ):
            if filters:
                self._tails.append(TailLog(name, files, target, log_line_prefixes, 0.1, _containing(filters)))

    def start(self) -> None:
        """Start the processes, each with its environment."""
        if threading.current_thread() is threading.main_thread():
            for each in os.environ.get("TORCHELASTIC_SIGNALS_TO_HANDLE", _SIGNALS).split(","):
                if hasattr(signal, each):
                    signal.signal(getattr(signal, each), _raise_signal)
        self._start()
        for tail in self._tails:
            tail.start()

    @abstractmethod
    def _start(self) -> None: ...

    @abstractmethod
    def _poll(self) -> RunProcsResult | None:
        """All is done, or one has failed: how; None while they run."""

    @abstractmethod
    def pids(self) -> dict[int, int]:
        """The numbers of the processes, by local rank."""

    @abstractmethod
    def _close(self, death_sig: signal.Signals, timeout: int = 30) -> None: ...

    def wait(self, timeout: float = -1, period: float = 1) -> RunProcsResult | None:
        """How the processes have ended; None if they still run after `timeout` seconds. Negative: without an end."""
        if timeout == 0:
            return self._poll()
        end = time.monotonic() + timeout if timeout > 0 else float("inf")
        while time.monotonic() < end:
            result = self._poll()
            if result is not None:
                return result
            time.sleep(period)
        return None

    def close(self, death_sig: signal.Signals | None = None, timeout: int = 30) -> None:
        """End the processes by a signal, and by force those that are there after `timeout` seconds."""
        self._close(death_sig or signal.SIGTERM, timeout)
        for tail in self._tails:
            tail.stop()


def _containing(filters: list[str]) -> Callable[[str], bool]:
    return lambda line: any(each in line for each in filters)


@contextlib.contextmanager
def _streams_to(stdout: str, stderr: str) -> Iterator[None]:
    """Let both streams of this process, of what it starts too, go to files."""
    for path, number, name in ((stdout, 1, "stdout"), (stderr, 2, "stderr")):
        if path:
            getattr(sys, name).flush()
            with open(path, "w", encoding="utf-8") as file:
                os.dup2(file.fileno(), number)
            setattr(sys, name, open(number, "w", encoding="utf-8", buffering=1, closefd=False))  # noqa: SIM115
    yield
    sys.stdout.flush()
    sys.stderr.flush()


def _run_function(
    function: Callable[..., Any], args: tuple[Any, ...], env: dict[str, str], stdout: str, stderr: str, results: Any
) -> None:
    """What a process does: the function, whose errors are noted and whose result is sent back."""
    os.environ.update(env)
    with _streams_to(stdout, stderr):
        results.send(record(function)(*args))
        results.close()


class MultiprocessContext(PContext):
    """Processes that run a function."""

    def __init__(
        self,
        name: str,
        entrypoint: Callable[..., Any],
        args: dict[int, tuple[Any, ...]],
        envs: dict[int, dict[str, str]],
        start_method: str,
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
        numa_options: Any = None,
        duplicate_stdout_filters: list[str] | None = None,
        duplicate_stderr_filters: list[str] | None = None,
    ) -> None:
        if numa_options is not None:
            raise NotImplementedError("processes are not bound to parts of a machine's memory")
        filters = (duplicate_stdout_filters, duplicate_stderr_filters)
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes, *filters)
        self.start_method = start_method
        self._processes: list[Any] = []
        self._receivers: list[Any] = []
        self._return_values: dict[int, Any] = {}

    def _start(self) -> None:
        if self._processes:
            raise ValueError("The process context already initialized. Most likely the start method got called twice.")
        context: Any = multiprocessing.get_context(self.start_method)
        for rank in range(self.nprocs):
            receiver, sender = context.Pipe(duplex=False)
            arguments = (
                self.entrypoint,
                self.args[rank],
                self.envs[rank],
                self.stdouts[rank],
                self.stderrs[rank],
                sender,
            )
            process = context.Process(target=_run_function, args=arguments, daemon=False)
            process.start()
            sender.close()
            self._processes.append(process)
            self._receivers.append(receiver)

    def _receive(self) -> None:
        """Take what has been sent: a process with a large result ends only after that."""
        for rank, receiver in enumerate(self._receivers):
            if rank not in self._return_values and not receiver.closed and receiver.poll(0):
                try:
                    self._return_values[rank] = receiver.recv()
                except EOFError:
                    receiver.close()

    def _poll(self) -> RunProcsResult | None:
        self._receive()
        failed = {rank: each for rank, each in enumerate(self._processes) if each.exitcode not in (None, 0)}
        if failed:
            failures = {
                rank: ProcessFailure(rank, each.pid, each.exitcode, self.error_files[rank])
                for rank, each in failed.items()
            }
            self.close()
            return RunProcsResult(failures=failures, stdouts=self.stdouts, stderrs=self.stderrs)
        if any(each.exitcode is None for each in self._processes):
            return None
        self._receive()
        self.close()
        return RunProcsResult(dict(sorted(self._return_values.items())), {}, self.stdouts, self.stderrs)

    def pids(self) -> dict[int, int]:
        """The numbers of the processes, by local rank."""
        return {rank: int(each.pid) for rank, each in enumerate(self._processes)}

    def _close(self, death_sig: signal.Signals, timeout: int = 30) -> None:
        for process in self._processes:
            if process.is_alive():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, death_sig)
        end = time.monotonic() + timeout
        for process in self._processes:
            process.join(max(0.0, end - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()


class SubprocessContext(PContext):
    """Processes that run a command."""

    def __init__(
        self,
        name: str,
        entrypoint: str,
        args: dict[int, tuple[Any, ...]],
        envs: dict[int, dict[str, str]],
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
        numa_options: Any = None,
        duplicate_stdout_filters: list[str] | None = None,
        duplicate_stderr_filters: list[str] | None = None,
    ) -> None:
        filters = (duplicate_stdout_filters, duplicate_stderr_filters)
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes, *filters)
        self._numa_options = numa_options
        self.subprocess_handlers: dict[int, SubprocessHandler] = {}

    def _start(self) -> None:
        if self.subprocess_handlers:
            raise ValueError("The subprocess handlers already initialized. Most likely the start method got called twice.")  # noqa: E501  # fmt: skip
        for rank in range(self.nprocs):
            self.subprocess_handlers[rank] = get_subprocess_handler(
                str(self.entrypoint), self.args[rank], self.envs[rank], self.stdouts[rank], self.stderrs[rank], rank,
                self._numa_options,
            )  # fmt: skip

    def _poll(self) -> RunProcsResult | None:
        codes = {rank: each.proc.poll() for rank, each in self.subprocess_handlers.items()}
        failed = [rank for rank, code in codes.items() if code not in (None, 0)]
        if not failed and None in codes.values():
            return None
        failures = {
            rank: ProcessFailure(rank, self.subprocess_handlers[rank].proc.pid, int(codes[rank] or 0), self.error_files[rank])  # noqa: E501
            for rank in failed
        }  # fmt: skip
        self.close()
        return RunProcsResult({}, failures, self.stdouts, self.stderrs)

    def pids(self) -> dict[int, int]:
        """The numbers of the processes, by local rank."""
        return {rank: each.proc.pid for rank, each in self.subprocess_handlers.items()}

    def _close(self, death_sig: signal.Signals, timeout: int = 30) -> None:
        for handler in self.subprocess_handlers.values():
            handler.close(death_sig)
        end = time.monotonic() + timeout
        for handler in self.subprocess_handlers.values():
            try:
                handler.proc.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:  # noqa: PERF203  each may be the one that does not end
                handler.close(signal.Signals(getattr(signal, "SIGKILL", signal.SIGTERM)))
                handler.proc.wait()
