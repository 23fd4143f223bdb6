"""`Work`: a collective that has been started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from .._core.process.locks import new_lock
from ..futures import Future
from ._engines import Pending

__all__ = ["Work"]


class Work:
    """A collective that has been started with `async_op=True`: `wait()` until its tensors may be used.

    Args:
        pending (sequence of Pendings): what is still under way. Default: `()`.
        result: the value of `result()`.
        finish (Callable, optional): called when all is done.

    Example:
        >>> x = torch.ones(1)
        >>> work = dist.all_reduce(x, async_op=True)
        >>> _ = work.wait()
        >>> x
        tensor([2.])
    """

    def __init__(
        self,
        pending: Sequence[Pending] = (),
        result: Any = None,
        finish: Callable[[], None] | None = None,
    ) -> None:
        self._pending = list(pending)
        self._result = result
        self._finish = finish
        self._future: Future[Any] | None = None
        self._unfinished = 0
        self._lock = new_lock()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is over; what went wrong is raised."""
        limit = timeout.total_seconds() if timeout else None
        for each in self._pending:
            each.wait(limit)
        self._complete()
        return True

    def attend(self) -> None:
        """Let it go on while nobody waits for it."""
        for each in self._pending:
            each.attend()

    def _complete(self) -> None:
        if self._finish is not None:
            with self._lock:
                if self._finish is not None:
                    self._finish()
                    self._finish = None

    def is_completed(self) -> bool:
        """Whether it is over, well or not."""
        return all(each.is_done() for each in self._pending)

    def is_success(self) -> bool:
        """Whether it is over, and well."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """The error that ended the collective, or None."""
        return next((error for each in self._pending if (error := each.error()) is not None), None)

    def source_rank(self) -> int:
        """The rank, in the group, from which a received message came."""
        return self._pending[0].source()

    def result(self) -> Any:
        """The tensors that were written."""
        return self._result

    def synchronize(self) -> None:
        """Wait until it is over."""
        self.wait()

    def block_current_stream(self) -> None:
        """Wait until it is over: processors have no streams that could wait instead."""
        self.wait()

    def get_future(self) -> Future[Any]:
        """A future of the tensors."""
        if self._future is None:
            self._future = Future()
            self._unfinished = len(self._pending)
            if not self._pending:
                self._future.set_result(self.result())
            for each in self._pending:
                each.when_done(self._one_is_done)
        return self._future

    def _one_is_done(self) -> None:
        with self._lock:
            self._unfinished -= 1
            if self._unfinished:
                return
        assert self._future is not None
        error = self.exception()
        if error is None:
            self._complete()
            self._future.set_result(self.result())
        else:
            self._future.set_exception(error)
