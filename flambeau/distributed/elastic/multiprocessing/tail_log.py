"""Showing what is written to files as it comes."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TextIO

__all__ = ["TailLog"]

_logger = logging.getLogger(__name__)


def _follow(
    prefix: str, path: str, target: TextIO, ended: threading.Event, pause: float, keep: Callable[[str], bool] | None
) -> None:
    """Copy the lines of a file, which may come to be later, until the end is announced and reached."""
    while not os.path.exists(path):
        if ended.is_set():
            return
        ended.wait(pause)
    with open(path, encoding="utf-8", errors="replace") as file:
        while True:
            line = file.readline()
            if line:
                if keep is None or keep(line):
                    target.write(f"{prefix}{line}")
            elif ended.is_set():
                return
            else:
                target.flush()
                ended.wait(pause)


class TailLog:
    """Copies the lines of several files to one stream, each with the prefix of its process."""

    def __init__(
        self,
        name: str,
        log_files: dict[int, str],
        dst: TextIO | str,
        log_line_prefixes: dict[int, str] | None = None,
        interval_sec: float = 0.1,
        log_line_filter: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._name = name
        self._files = log_files
        self._target = dst
        self._prefixes = log_line_prefixes or {}
        self._pause = interval_sec
        self._keep = log_line_filter
        self._ended = {rank: threading.Event() for rank in log_files}
        self._futures: list[Future[None]] = []
        self._opened: TextIO | None = None
        self._stopped = False
        self._pool = ThreadPoolExecutor(max_workers=len(log_files), thread_name_prefix=name) if log_files else None

    def start(self) -> TailLog:
        """Begin to copy, in threads."""
        if self._pool is None:
            return self
        if isinstance(self._target, str):
            self._opened = open(self._target, "a", encoding="utf-8")  # noqa: SIM115  closed by `stop`
        target = self._opened if isinstance(self._target, str) else self._target
        assert target is not None
        for rank, path in self._files.items():
            prefix = self._prefixes.get(rank, f"[{self._name}{rank}]:")
            arguments = (prefix, path, target, self._ended[rank], self._pause, self._keep)
            self._futures.append(self._pool.submit(_follow, *arguments))
        return self

    def stop(self) -> None:
        """Copy what is there, and end."""
        for ended in self._ended.values():
            ended.set()
        for future in self._futures:
            error = future.exception()
            if error is not None:
                _logger.error("a log of %s could not be shown: %s", self._name, error)
        if self._pool is not None:
            self._pool.shutdown(wait=True)
        if self._opened is not None:
            self._opened.close()
        self._stopped = True

    def stopped(self) -> bool:
        """Whether it has ended."""
        return self._stopped
