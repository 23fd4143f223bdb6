"""Parts that fail in turn: the first call of one of some functions fails, then the second, and so on to the last.

`sweep` runs an action once for each of these calls. The action may fail then, with the error that was injected; whoever
sweeps checks afterwards that nothing is lost or held, and that the same action works when nothing fails.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

from flambeau._dispatch.interpreter import Interpreter
from flambeau._dispatch.op import Op

Target = tuple[Any, str]

FILE_OPERATIONS: Sequence[Target] = (
    (builtins, "open"),
    *[
        (os, name)
        for name in ("open", "fdopen", "stat", "fstat", "fchmod", "fsync", "pwrite", "write", "preadv", "read")
        + ("replace", "rename", "unlink", "mkdir", "makedirs", "scandir", "listdir", "ftruncate", "posix_fallocate")
        if hasattr(os, name)
    ],
)
ALLOCATIONS: Sequence[Target] = tuple(
    (np, name) for name in ("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like")
)
"""Of new arrays by name; those that NumPy makes for results are not seen."""
STARTS: Sequence[Target] = ((threading.Thread, "start"), (os, "fork"))


def disk_full() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


def no_more_threads() -> RuntimeError:
    return RuntimeError("can't start new thread")


class Calls:
    """Counts calls, and lets one of them fail."""

    def __init__(self, number: int, error: Callable[[], BaseException], thread: str | None = None) -> None:
        self._number, self._error = number, error
        self._owner = thread or threading.current_thread().name
        self.count = 0
        self.where = ""
        """The function that failed."""

    def note(self, name: str = "") -> None:
        if threading.current_thread().name == self._owner:  # what other threads do is not the action's
            self.count += 1
            if self.count == self._number:
                self.where = name
                raise self._error()

    @property
    def failed(self) -> bool:
        return self.count >= self._number

    def watched(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.note(name)
            return function(*args, **kwargs)

        return call


@contextlib.contextmanager
def calls_of(targets: Sequence[Target], calls: Calls) -> Iterator[None]:
    """Let `calls` count the calls of the targets, and one of them fail."""
    with contextlib.ExitStack() as stack:
        for owner, name in targets:
            stack.enter_context(mock.patch.object(owner, name, calls.watched(getattr(owner, name), name)))
        yield


class _Ops(Interpreter):
    """Lets an op fail before it runs: its memory, or its kernel."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        self._calls.note()
        return op(*args)


def sweep(
    action: Callable[[], Any],
    check: Callable[[BaseException | None], None],
    targets: Sequence[Target] | None,
    error: Callable[[], Exception],
) -> int:
    """Let each call that `action` makes of the targets fail in turn, or each op if there are none; how many there were.

    `check` is called after each time with the error that the action ended with, None if it did not mind.
    """
    for number in range(1, 10_000):
        calls = Calls(number, error)
        ended: BaseException | None = None
        try:
            with _Ops(calls) if targets is None else calls_of(targets, calls):
                action()
        except Exception as caught:
            ended = caught
        if not calls.failed:
            assert ended is None, "nothing was made to fail"
            return number - 1
        check(ended)
    raise AssertionError("the action never ends")
