"""Locks that a forked process finds open.

A forked process is a copy of the one thread that forks. A lock that another thread held at that moment would stay
locked in it for ever, and what that thread was changing would stay half changed. So a fork waits until this thread has
all locks of the package, and until no other thread is in the middle of importing one of its modules, which Python
guards by locks of its own.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from .interrupts import uninterrupted

_LONGEST_WAIT = 10.0
"""Seconds. After that the process is forked all the same, and the locks that could not be had are made anew in it."""
_BETWEEN_LOOKS = 0.001

_locks: set[weakref.ref[Any]] = set()
_providers: list[Callable[[], Any]] = []


@uninterrupted
def _take(lock: Any) -> None:
    try:
        lock.acquire()
    except BaseException:
        if lock._is_owned():
            lock.release()
        raise


@uninterrupted
def _give_back(lock: Any, *exception: object) -> None:
    lock.release()


_LockOfAWith: Any = type(
    "_LockOfAWith", (type(threading.RLock()),), {"__enter__": _take, "__exit__": _give_back, "__module__": __name__}
)
"""A lock that no interrupt leaves taken: from Python 3.14 on one may come before the body of a `with` begins."""

_MAY_STAY_TAKEN = sys.version_info >= (3, 14)


def new_lock() -> Any:
    """A lock that a fork leaves unlocked in the child, for `with`."""
    lock = _LockOfAWith() if _MAY_STAY_TAKEN else threading.Lock()
    _keep(lock)
    return lock


def new_handed_lock() -> threading.Lock:
    """A plain lock that one thread may take and another give back."""
    lock = threading.Lock()
    _keep(lock)
    return lock


def new_reentrant_lock() -> Any:
    """A lock that a thread may take several times."""
    lock = _LockOfAWith() if _MAY_STAY_TAKEN else threading.RLock()
    _keep(lock)
    return lock


def new_condition() -> threading.Condition:
    """What threads wait at for each other, around a lock of its own."""
    return threading.Condition(new_reentrant_lock())


def also_at_forks(provider: Callable[[], Any]) -> None:
    """Take the lock that `provider` gives, which is not one of ours, before each fork; None: there is none yet."""
    _providers.append(provider)


def _keep(lock: Any) -> None:
    _locks.add(weakref.ref(lock, _locks.discard))


def _all_locks() -> list[Any]:
    found = [reference() for reference in tuple(_locks)]  # a copy in one step: other threads may add to the set
    found += [provider() for provider in _providers]
    return [lock for lock in found if lock is not None]


def _imports_run() -> bool:
    """Whether a module of this package is being imported."""
    package = __name__.partition(".")[0]
    return any(
        name.startswith(package) and getattr(getattr(module, "__spec__", None), "_initializing", False)
        for name, module in tuple(sys.modules.items())
    )


class _AtFork:
    """What happens to the locks around a fork."""

    def __init__(self) -> None:
        self._taken: list[Any] = []
        self._missed: list[Any] = []

    def before(self) -> None:
        """Take all locks. No order of theirs matters: who cannot have one gives back all others before it waits."""
        end = time.monotonic() + _LONGEST_WAIT
        first = None  # the lock that was held elsewhere at the last attempt
        while True:
            locks = _all_locks()
            patient = time.monotonic() < end
            if first is not None and patient and first.acquire(timeout=max(0.0, end - time.monotonic())):
                self._taken.append(first)
                locks = [lock for lock in locks if lock is not first]
            self._missed = [lock for lock in locks if not self._take(lock)]
            if not patient or (not self._missed and not _imports_run()):
                return
            first = self._missed[0] if self._missed else None
            self._give_back()
            if first is None:
                time.sleep(_BETWEEN_LOOKS)

    def after_in_parent(self) -> None:
        """Let the other threads go on."""
        self._give_back()
        self._missed = []

    def after_in_child(self) -> None:
        """The other threads are gone, and what they held with them."""
        for lock in self._missed:
            lock._at_fork_reinit()
        self.after_in_parent()

    def _take(self, lock: Any) -> bool:
        taken: bool = lock.acquire(blocking=False)
        if taken:
            self._taken.append(lock)
        return taken

    def _give_back(self) -> None:
        while self._taken:
            self._taken.pop().release()


if hasattr(os, "register_at_fork"):
    _at_fork = _AtFork()
    os.register_at_fork(
        before=_at_fork.before, after_in_parent=_at_fork.after_in_parent, after_in_child=_at_fork.after_in_child
    )
