"""Timers of the processes of one machine, by a named pipe."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from .api import TimerClient, TimerRequest

__all__ = ["FileTimerClient", "FileTimerRequest", "FileTimerServer"]


class FileTimerRequest(TimerRequest):
    """A worker's wish: by which signal it is to be ended at a time, or, with a negative one, that this be forgotten."""

    __slots__ = ["signal", "version", "worker_pid"]

    def __init__(self, worker_pid: int, scope_id: str, expiration_time: float, signal: int = 0) -> None:
        super().__init__(worker_pid, scope_id, expiration_time)
        self.version = 1
        self.worker_pid, self.signal = worker_pid, signal

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileTimerRequest) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def to_json(self) -> str:
        """The wish as a line."""
        return json.dumps(
            {
                "version": self.version, "pid": self.worker_pid, "scope_id": self.scope_id,
                "expiration_time": self.expiration_time, "signal": self.signal,
            }
        )  # fmt: skip


_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


class FileTimerClient(TimerClient):
    """A process asks for itself; the default signal is SIGKILL, where there is one."""

    def __init__(self, file_path: str, signal: signal.Signals = _KILL) -> None:
        super().__init__()
        self._file_path = file_path
        self.signal = signal

    def _send(self, request: FileTimerRequest) -> None:
        try:
            pipe = os.open(self._file_path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            raise BrokenPipeError(
                "Could not send the FileTimerRequest because FileTimerServer is not available."
            ) from error
        line = (request.to_json() + "\n").encode()
        if len(line) > select.PIPE_BUF:
            raise RuntimeError(f"FileTimerRequest larger than {select.PIPE_BUF} bytes is not supported: {line!r}")
        try:
            os.write(pipe, line)
        finally:
            os.close(pipe)

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Ask for a timer."""
        self._send(FileTimerRequest(os.getpid(), scope_id, expiration_time, int(self.signal)))

    def release(self, scope_id: str) -> None:
        """Ask that it be forgotten."""
        self._send(FileTimerRequest(os.getpid(), scope_id, -1, 0))


class FileTimerServer:
    """Reads wishes from the pipe, which it makes, and ends the processes whose time is over."""

    def __init__(
        self,
        file_path: str,
        run_id: str,
        max_interval: float = 10,
        daemon: bool = True,
        log_event: Callable[[str, FileTimerRequest | None], None] | None = None,
    ) -> None:
        self._file_path, self._run_id = file_path, run_id
        self._max_interval, self._daemon = max_interval, daemon
        self._log_event = log_event or (lambda name, request: None)
        self._timers: dict[tuple[int, str], FileTimerRequest] = {}
        self._stop_signaled = False
        self._watchdog_thread: threading.Thread | None = None
        self._last_progress_time = int(time.time())
        if not hasattr(os, "mkfifo"):
            raise RuntimeError("timers in a file need named pipes, which this system lacks: use LocalTimerServer")
        with contextlib.suppress(FileNotFoundError):
            os.remove(file_path)
        os.mkfifo(file_path)

    def start(self) -> None:
        """Begin to watch, in a thread."""
        self._stop_signaled = False
        # The pipe is open for reading and writing: it has no end while nobody writes.
        pipe = os.open(self._file_path, os.O_RDWR | os.O_NONBLOCK)
        self._watchdog_thread = threading.Thread(target=self._watch, args=(pipe,), daemon=self._daemon)
        self._watchdog_thread.start()
        self._log_event("watchdog started", None)

    def stop(self) -> None:
        """Stop to watch the timers."""
        self._stop_signaled = True
        if self._watchdog_thread is not None:
            self._watchdog_thread.join(self._max_interval)
            self._watchdog_thread = None
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._file_path)
        self._log_event("watchdog stopped", None)

    def run_once(self) -> None:
        """Look once, and stop."""
        pipe = os.open(self._file_path, os.O_RDWR | os.O_NONBLOCK)
        try:
            self._look(pipe, 0.0)
        finally:
            os.close(pipe)
        self.stop()

    def get_last_progress_time(self) -> int:
        """When it has looked last."""
        return self._last_progress_time if self._timers else int(time.time())

    def _watch(self, pipe: int) -> None:
        try:
            while not self._stop_signaled:
                self._look(pipe, min(self._max_interval, 0.05))
        finally:
            os.close(pipe)

    def _look(self, pipe: int, pause: float) -> None:
        """Note the wishes that have come, and end processes."""
        text = b""
        while select.select([pipe], [], [], pause)[0]:
            text += os.read(pipe, 65536)
            pause = 0.0
        for line in text.decode().splitlines():
            self._note(json.loads(line))
        now = time.time()
        for key, timer in list(self._timers.items()):
            if timer.expiration_time <= now:
                self._end(timer)
                for other in [each for each in self._timers if each[0] == key[0]]:
                    del self._timers[other]
        self._last_progress_time = int(now)

    def _note(self, fields: dict[str, Any]) -> None:
        timer = FileTimerRequest(fields["pid"], fields["scope_id"], fields["expiration_time"], fields["signal"])
        key = (timer.worker_pid, timer.scope_id)
        if timer.expiration_time < 0:
            self._timers.pop(key, None)
        else:
            self._timers[key] = timer

    def _end(self, timer: FileTimerRequest) -> None:
        self._log_event("timer expired", timer)
        with contextlib.suppress(ProcessLookupError):
            os.kill(timer.worker_pid, timer.signal)
