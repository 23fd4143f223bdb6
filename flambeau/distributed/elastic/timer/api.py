"""Timers that end processes which do not finish a block in time: workers ask for them, a server watches."""

from __future__ import annotations

import abc
import contextlib
import inspect
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

__all__ = ["RequestQueue", "TimerClient", "TimerRequest", "TimerServer", "configure", "expires"]

_logger = logging.getLogger(__name__)


class TimerRequest:
    """A worker's wish: to be ended at a time, or, with a negative one, that a timer of its be forgotten."""

    __slots__ = ["expiration_time", "scope_id", "worker_id"]

    def __init__(self, worker_id: Any, scope_id: str, expiration_time: float) -> None:
        self.worker_id, self.scope_id, self.expiration_time = worker_id, scope_id, expiration_time

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimerRequest) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __hash__(self) -> int:
        return hash((self.worker_id, self.scope_id, self.expiration_time))


class TimerClient(abc.ABC):
    """What a worker asks by."""

    @abc.abstractmethod
    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Ask for a timer."""

    @abc.abstractmethod
    def release(self, scope_id: str) -> None:
        """Ask that it be forgotten."""


class RequestQueue(abc.ABC):
    """The way of wishes to the server."""

    @abc.abstractmethod
    def size(self) -> int:
        """How many requests wait in the queue."""

    @abc.abstractmethod
    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        """At most so many, after so many seconds at most."""


class TimerServer(abc.ABC):
    """Watches timers, and ends the workers whose time is over."""

    def __init__(self, request_queue: RequestQueue, max_interval: float, daemon: bool = True) -> None:
        self._request_queue, self._max_interval, self._daemon = request_queue, max_interval, daemon
        self._watchdog_thread: threading.Thread | None = None
        self._stop_signaled = False

    @abc.abstractmethod
    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        """Note the timers that processes ask for."""

    @abc.abstractmethod
    def clear_timers(self, worker_ids: set[Any]) -> None:
        """Forget all timers of workers."""

    @abc.abstractmethod
    def get_expired_timers(self, deadline: float) -> dict[Any, list[TimerRequest]]:
        """By worker the timers that are over at a time."""

    @abc.abstractmethod
    def _reap_worker(self, worker_id: Any) -> bool:
        """End a worker; whether that succeeded."""

    def _run_watchdog(self) -> None:
        self.register_timers(self._request_queue.get(max(1, self._request_queue.size()), self._max_interval))
        ended = set()
        for worker, timers in self.get_expired_timers(time.time()).items():
            _logger.info("ending worker %s: %s", worker, [each.scope_id for each in timers])
            if self._reap_worker(worker):
                ended.add(worker)
        self.clear_timers(ended)

    def _watchdog_loop(self) -> None:
        while not self._stop_signaled:
            try:
                self._run_watchdog()
            except Exception:  # noqa: PERF203  one wrong wish must not end the watch
                _logger.exception("the server of timers goes on after an error")

    def start(self) -> None:
        """Begin to watch, in a thread."""
        self._stop_signaled = False
        self._watchdog_thread = threading.Thread(target=self._watchdog_loop, daemon=self._daemon)
        self._watchdog_thread.start()

    def stop(self) -> None:
        """Stop to watch the timers."""
        self._stop_signaled = True
        if self._watchdog_thread is not None:
            self._watchdog_thread.join(self._max_interval)
            self._watchdog_thread = None


_CLIENT: list[TimerClient] = []


def configure(timer_client: TimerClient) -> None:
    """Choose by what this process asks."""
    _CLIENT[:] = [timer_client]


@contextlib.contextmanager
def expires(after: float, scope: str | None = None, client: TimerClient | None = None) -> Iterator[None]:
    """The process is ended unless this block is left after so many seconds."""
    if client is None:
        if not _CLIENT:
            raise RuntimeError("Configure timer client before using countdown timers.")
        client = _CLIENT[0]
    if scope is None:  # the place of the block in the program
        caller = inspect.stack()[2]
        scope = f"{caller.filename}#{caller.lineno}"
    client.acquire(scope, time.time() + after)
    try:
        yield
    finally:
        client.release(scope)
