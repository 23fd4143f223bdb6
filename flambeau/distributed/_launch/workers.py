"""The processes of this machine: started together, watched, and ended together."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .inheritance import apart, name_for_children
from .options import Options
from .worker import ERROR_FILE, PIPE

_PATIENCE = 5.0
"""Seconds that a process has to end by itself when it is told to."""
_STDOUT, _STDERR = 1, 2
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


@dataclass
class Failure:
    """A process that ended badly."""

    rank: int
    local_rank: int
    pid: int
    exit_code: int
    message: str
    when: float

    def __str__(self) -> str:
        how = f"exit code {self.exit_code}"
        if self.exit_code < 0:
            with contextlib.suppress(ValueError):
                how = f"killed by {signal.Signals(-self.exit_code).name}"
        return f"rank {self.rank} (local rank {self.local_rank}, process {self.pid}): {how}" + (
            f"\n    {self.message}" if self.message else ""
        )


class Workers:
    """Processes that run the program."""

    def __init__(self, options: Options, environments: Sequence[dict[str, str]], folder: Path) -> None:
        self._options = options
        self._folder = folder
        self._threads: list[threading.Thread] = []
        self._files: list[IO[Any]] = []
        self._ended: dict[int, float] = {}
        self._ranks = [int(each["RANK"]) for each in environments]
        # Nobody writes into it. It closes when this process ends, in whatever way, and then the others end too.
        self._reading, self._writing = os.pipe()
        self.processes: list[subprocess.Popen[bytes]] = []
        try:
            for local_rank, environment in enumerate(environments):
                self.processes.append(self._start(local_rank, environment))
        except BaseException:
            self.end()
            raise

    def _start(self, local_rank: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        own = self._folder / str(local_rank)
        own.mkdir(parents=True, exist_ok=True)
        variables = {**os.environ, **environment, ERROR_FILE: str(own / "error.json")}
        variables[PIPE] = str(name_for_children(self._reading))
        process = subprocess.Popen(
            self._command(),
            env=variables,
            stdout=self._output(local_rank, _STDOUT, own / "stdout.log"),
            stderr=self._output(local_rank, _STDERR, own / "stderr.log"),
            **apart(self._reading),
        )
        for kind, stream in ((_STDOUT, process.stdout), (_STDERR, process.stderr)):
            if stream is not None:
                self._pass_on(local_rank, kind, stream, own)
        return process

    def _command(self) -> list[str]:
        options = self._options
        if not options.python:
            return options.command
        module = ["-m"] if options.module else []
        return [sys.executable, "-u", "-m", "flambeau._cli.worker", *module, *options.command]

    def _output(self, local_rank: int, kind: int, path: Path) -> Any:
        options = self._options
        if options.tee.get(local_rank, 0) & kind:
            return subprocess.PIPE
        if options.redirects.get(local_rank, 0) & kind:
            file = path.open("wb")
            self._files.append(file)
            return file
        return subprocess.DEVNULL if options.shown is not None and local_rank not in options.shown else None

    def _pass_on(self, local_rank: int, kind: int, stream: IO[bytes], folder: Path) -> None:
        """Copy an output into a file, and to the terminal with the rank in front of each line."""
        shown = self._options.shown is None or local_rank in self._options.shown
        terminal = sys.stdout if kind == _STDOUT else sys.stderr
        path = folder / ("stdout.log" if kind == _STDOUT else "stderr.log")
        mark = f"[{self._options.role}{self._ranks[local_rank]}]:"

        def copy() -> None:
            with path.open("wb") as file, stream:
                for line in stream:
                    file.write(line)
                    file.flush()
                    if shown:
                        terminal.write(mark + line.decode(errors="replace"))
                        terminal.flush()

        thread = threading.Thread(target=copy, name=f"output of {local_rank}", daemon=True)
        thread.start()
        self._threads.append(thread)

    def failures(self) -> list[Failure]:
        """The processes that ended badly, in the order in which they did."""
        found = []
        for local_rank, process in enumerate(self.processes):
            code = process.poll()
            if code is not None:
                when = self._ended.setdefault(local_rank, time.time())
                if code:
                    text, wrote = self._message(local_rank)
                    rank = self._ranks[local_rank]
                    found.append(Failure(rank, local_rank, process.pid, code, text, wrote or when))
        return sorted(found, key=lambda failure: failure.when)

    def _message(self, local_rank: int) -> tuple[str, float | None]:
        path = self._folder / str(local_rank) / "error.json"
        try:
            content = json.loads(path.read_text(encoding="utf-8"))["message"]
            return str(content["message"] if isinstance(content, dict) else content), path.stat().st_mtime
        except (OSError, ValueError, KeyError, TypeError):
            return "", None

    def are_done(self) -> bool:
        """Whether all ended well."""
        return all(process.poll() == 0 for process in self.processes)

    def end(self, first: signal.Signals = signal.SIGTERM) -> None:
        """End all processes and what they started: asked first, and by force if they do not."""
        for process in self._alive():
            _signal(process, first)
        until = time.monotonic() + _PATIENCE
        while any(True for _ in self._alive()) and time.monotonic() < until:
            time.sleep(0.02)
        for process in self.processes:
            _signal(process, _KILL)  # also to those whose leader is gone: what it had started may be left
            process.wait()
        for thread in self._threads:
            thread.join(_PATIENCE)
        for file in self._files:
            file.close()
        for descriptor in (self._reading, self._writing):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _alive(self) -> Iterator[subprocess.Popen[bytes]]:
        return (process for process in self.processes if process.poll() is None)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if sys.platform == "win32":  # which has no signals for other processes
        end = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
        subprocess.run(end, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        with contextlib.suppress(OSError):
            process.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
