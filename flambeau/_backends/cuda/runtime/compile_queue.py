"""Kernels that are compiled side by side while Python goes on: what is given to the device meanwhile waits in order.

A device does things in the order in which it is given them. So where kernels are compiled by several threads, launches
are written down, and everything after them too, with the addresses that it is about. It is started when somebody needs
the device itself: to read elements, for another queue, for a library that knows nothing of this. Memory is taken and
given back meanwhile as ever, since what uses it again comes later in the same order.

This is done where it is known when it ends: in the first call of a compiled function, which needs all its kernels, and
where its program is written.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import get_ident
from typing import Any, TypeVar

from ...._core.process.locks import new_reentrant_lock

_MOST_COMPILERS = 16

Found = TypeVar("Found")


class CompileQueue:
    """What waits for the kernels that are compiled."""

    def __init__(self) -> None:
        self.steps: list[tuple[Callable[..., Any], tuple[Any, ...]]] | None = None
        """What is to be started, in order; None: everything is started at once."""
        self._thread = 0
        self._lock = new_reentrant_lock()
        self._compilers: ThreadPoolExecutor | None = None

    @contextlib.contextmanager
    def deferring_launches(self) -> Iterator[None]:
        """Python goes ahead of the device until the end of the context; one thread at a time does."""
        with self._lock:
            is_first = self.steps is None
            if is_first:
                self.steps, self._thread = [], get_ident()
        try:
            yield
        finally:
            if is_first:
                self.stop()

    def stop(self) -> None:
        """Start what waits; from now on everything is started at once."""
        with self._lock:
            try:
                self.catch_up()
            finally:
                self.steps = None
                if self._compilers is not None:
                    self._compilers.shutdown(wait=False)
                    self._compilers = None

    def start(self, step: Callable[..., Any], *args: Any) -> None:
        """Start something in its turn: not now, unless another thread asks, which may have waited for this one."""
        if self.steps is not None and get_ident() == self._thread:
            self.steps.append((step, args))
        else:
            self.catch_up()
            step(*args)

    def catch_up(self) -> None:
        """Start what waits, when its kernels are there."""
        if not self.steps:
            return
        with self._lock:
            steps, self.steps = self.steps, []
            for step, args in steps:
                step(*args)

    def compiled(self, compile: Callable[[], Found]) -> Callable[[], Found]:
        """What gives the result of a function that compiles: it is called by a thread of its own, or here and now."""
        if self.steps is None:
            found = compile()
            return lambda: found
        with self._lock:
            if self._compilers is None:
                self._compilers = ThreadPoolExecutor(min(_MOST_COMPILERS, os.cpu_count() or 1))
            return self._compilers.submit(compile).result


COMPILE_QUEUE = CompileQueue()
