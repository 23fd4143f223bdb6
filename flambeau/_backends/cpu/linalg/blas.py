"""The linear algebra library that NumPy brings along, and its threads."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...._core.process.locks import new_lock

_NAMES = ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads")


class _Threads(NamedTuple):
    """The library's functions about the number of its threads."""

    get: Callable[[], int]
    set: Callable[[int], object]


@functools.cache
def openblas() -> ctypes.CDLL | None:
    """The library; None: it is another one."""
    home = Path(np.__file__).parent
    folders = (home.parent / "numpy.libs", home / ".dylibs", home / ".libs")
    paths = [path for folder in folders if folder.is_dir() for path in sorted(folder.glob("*openblas*"))]
    with contextlib.suppress(OSError):
        return ctypes.CDLL(str(paths[0])) if paths else None
    return None


@functools.cache
def _threads() -> _Threads | None:
    """OpenBLAS's functions about its threads; None for another library, or one without them."""
    library = openblas()
    for name in _NAMES if library is not None else ():
        if hasattr(library, name.format("set")):
            return _Threads(getattr(library, name.format("get")), getattr(library, name.format("set")))
    return None


class _OneThread:
    """How many callers want one thread at the moment, and how many threads there were before."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.callers = 0
        self.before = 0

    def enter(self, threads: _Threads) -> None:
        with self.lock:
            if not self.callers:
                self.before = threads.get()
                threads.set(1)
            self.callers += 1

    def leave(self, threads: _Threads) -> None:
        with self.lock:
            self.callers -= 1
            if not self.callers:
                threads.set(self.before)

    def after_fork(self) -> None:
        """The other threads' calls are not there in a forked process, and the thread that forks is in none."""
        threads = _threads()
        if self.callers and threads is not None:
            self.callers = 0
            threads.set(self.before)
            if _limited:
                self.enter(threads)


_ONE_THREAD = _OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ONE_THREAD.after_fork)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let the library use the calling thread alone."""
    threads = _threads()
    if threads is None:
        yield
        return
    _ONE_THREAD.enter(threads)
    try:
        yield
    finally:
        _ONE_THREAD.leave(threads)


_limited = False


def limit_to_one_thread() -> bool:
    """Let the library use the calling thread alone until `lift_limit`; False: there is no way to say so."""
    global _limited
    threads = _threads()
    if threads is None:
        return False
    if not _limited:
        _limited = True
        _ONE_THREAD.enter(threads)
    return True


def lift_limit() -> None:
    """Undo `limit_to_one_thread`."""
    global _limited
    threads = _threads()
    if _limited and threads is not None:
        _limited = False
        _ONE_THREAD.leave(threads)


def used_threads() -> int | None:
    """How many threads the library uses; None: it does not say."""
    threads = _threads()
    return None if threads is None else threads.get()


def limit_threads(number: int) -> bool:
    """Let matrix products use at most `number` threads; False: there is no way to say so."""
    threads = _threads()
    if threads is None:
        return False
    with _ONE_THREAD.lock:
        if _ONE_THREAD.callers:
            _ONE_THREAD.before = number
        else:
            threads.set(number)
    return True
