"""What all interpreters do that look on while a user's call runs: nothing that goes wrong in them reaches that call."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..._core.modes import THREAD
from ..._dispatch.interpreter import Interpreter
from ..._dispatch.op import Op
from .watch import Watch


class Careful(Interpreter):
    """Runs every op once, and takes note of it; from its first failure on it takes no more notes."""

    sees_checks = True
    takes_operators_whole = True
    _watch: Watch
    """What looks on at the Python of the call."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Exception | None = None
        """What went wrong here; from then on nothing is noted."""
        self._raised: BaseException | None = None
        """What an op raised last."""
        self._done: list[Any] = []
        """What the op that is being noted has given."""

    @property
    def is_refused(self) -> bool:
        """Whether notes are of no use any more."""
        raise NotImplementedError

    def _run(self, op: Op, args: Sequence[Any]) -> Any:
        """Run an op by `_apply`, and take note of it."""
        raise NotImplementedError

    @contextmanager
    def aside(self) -> Iterator[None]:
        modes = THREAD.modes
        stack = modes.interpreters
        try:
            modes.interpreters = ()
            modes.refresh()
            with self._watch.looking_away():
                yield
        finally:
            modes.interpreters = stack
            modes.refresh()

    def failed(self, error: Exception) -> None:
        """Note what went wrong: the call goes on to its end, for nobody could undo what it has done."""
        self.fault = self.fault or error
        self._watch.stops = False

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        try:
            is_over = self.fault is not None or self.is_refused
        except Exception as error:
            self.failed(error)
            is_over = True
        if is_over:
            return op(*args)
        # Ops run nothing of the user's, and to hear of all that they do takes longer than they do.
        watching, tracing = sys.getprofile(), sys.gettrace() if self._watch.traces else None
        sys.setprofile(None)
        if tracing is not None:
            sys.settrace(None)
        before, self._done = self._done, []
        try:
            return self._run(op, args)
        except Exception as error:
            if error is self._raised:
                raise
            self.failed(error)
            return self._done[0] if self._done else op(*args)
        finally:
            self._done = before
            if not self._watch.is_stopped:
                if tracing is not None:
                    sys.settrace(tracing)
                sys.setprofile(watching)

    def _apply(self, function: Any, args: Sequence[Any], declines: bool = False) -> Any:
        """Run an op: what it raises is its own, and what it gives counts if all else fails.

        `declines`: by None it says that it has done nothing.
        """
        try:
            result = function(*args)
        except BaseException as error:
            self._raised = error
            raise
        if not declines or result is not None:
            self._done.append(result)
        return result
