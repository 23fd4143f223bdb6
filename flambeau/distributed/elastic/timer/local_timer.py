"""Timers of the processes of one machine, by a queue of `multiprocessing`."""

from __future__ import annotations

import os
import queue
import signal
import time
from typing import Any

from .api import RequestQueue, TimerClient, TimerRequest, TimerServer

__all__ = ["LocalTimerClient", "LocalTimerServer", "MultiprocessingRequestQueue"]


class LocalTimerClient(TimerClient):
    """A process asks for itself."""

    def __init__(self, mp_queue: Any) -> None:
        super().__init__()
        self._mp_queue = mp_queue

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Ask for a timer."""
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, expiration_time))

    def release(self, scope_id: str) -> None:
        """Ask that it be forgotten."""
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, -1))


class MultiprocessingRequestQueue(RequestQueue):
    """A queue of requests between processes."""

    def __init__(self, mp_queue: Any) -> None:
        super().__init__()
        self._mp_queue = mp_queue

    def size(self) -> int:
        """About how many wait."""
        return int(self._mp_queue.qsize())

    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        """At most so many, after so many seconds at most."""
        found: list[TimerRequest] = []
        end = time.time() + timeout
        while len(found) < size and (left := end - time.time()) > 0:
            try:
                found.append(self._mp_queue.get(block=True, timeout=left))
            except queue.Empty:  # noqa: PERF203  the wait is what takes time
                break
        return found


class LocalTimerServer(TimerServer):
    """Watches the timers of processes, and ends those whose time is over."""

    def __init__(self, mp_queue: Any, max_interval: float = 60, daemon: bool = True) -> None:
        super().__init__(MultiprocessingRequestQueue(mp_queue), max_interval, daemon)
        self._timers: dict[tuple[Any, str], TimerRequest] = {}

    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        """Note the timers that processes ask for."""
        for each in timer_requests:
            key = (each.worker_id, each.scope_id)
            if each.expiration_time < 0:
                self._timers.pop(key, None)
            else:
                self._timers[key] = each

    def clear_timers(self, worker_ids: set[int]) -> None:
        """Forget all timers of processes."""
        for key in [key for key in self._timers if key[0] in worker_ids]:
            del self._timers[key]

    def get_expired_timers(self, deadline: float) -> dict[Any, list[TimerRequest]]:
        """By process the timers that are over at a time."""
        expired: dict[Any, list[TimerRequest]] = {}
        for each in self._timers.values():
            if each.expiration_time <= deadline:
                expired.setdefault(each.worker_id, []).append(each)
        return expired

    def _reap_worker(self, worker_id: Any) -> bool:
        try:
            os.kill(worker_id, getattr(signal, "SIGKILL", signal.SIGTERM))
        except ProcessLookupError:
            return True  # it has ended by itself
        except OSError:
            return False
        return True
