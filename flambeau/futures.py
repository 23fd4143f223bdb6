"""Results that come later, under the names of `torch.futures`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ._core.process.locks import new_condition, new_lock

__all__ = ["Future", "collect_all", "wait_all"]

Result = TypeVar("Result")
Other = TypeVar("Other")


class Future(Generic[Result]):
    """A result that another thread, or a later line, supplies.

    >>> future = flambeau.futures.Future()
    >>> doubled = future.then(lambda done: done.value() * 2)
    >>> future.set_result(21)
    >>> doubled.wait()
    42

    Args:
        devices: the devices whose work a result waits for.
    """

    def __init__(self, *, devices: Any = None) -> None:
        if devices:
            raise RuntimeError("futures of accelerators need an accelerator, and this installation has none")
        self._condition = new_condition()
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[Result]], Any]] = []

    def done(self) -> bool:
        """Whether the result is there, or an error in its place."""
        return self._done

    def wait(self) -> Result:
        """The result, once it is there; an error in its place is raised."""
        with self._condition:
            self._condition.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> Result:
        """The result, which must be there."""
        if not self._done:
            raise RuntimeError("The future has no result yet: call wait(), or value() in a callback of then()")
        if self._error is not None:
            raise self._error
        result: Result = self._result
        return result

    def then(self, callback: Callable[[Future[Result]], Other]) -> Future[Other]:
        """A future of what the callback makes of this one, called when it is done."""
        following: Future[Other] = Future()

        def follow(future: Future[Result]) -> None:
            try:
                result = callback(future)
            except Exception as error:
                following.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
            else:
                following.set_result(result)

        self.add_done_callback(follow)
        return following

    def add_done_callback(self, callback: Callable[[Future[Result]], Any]) -> None:
        """Call the callback with this future when it is done, at once if it is."""
        with self._condition:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def set_result(self, result: Result) -> None:
        """Supply the result."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Supply an error in the result's place."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, result: Any, error: BaseException | None) -> None:
        with self._condition:
            if self._done:
                raise RuntimeError("Future can only be marked completed once: it already has a result")
            self._result, self._error, self._done = result, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            callback(self)


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future that is done when all of these are."""
    collected: Future[list[Future[Any]]] = Future()
    remaining = len(futures)
    lock = new_lock()

    def one_is_done(_: Future[Any]) -> None:
        nonlocal remaining
        with lock:
            remaining -= 1
            last = remaining == 0
        if last:
            collected.set_result(futures)

    for future in futures:
        future.add_done_callback(one_is_done)
    if not futures:
        collected.set_result(futures)
    return collected


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The results of all, in their order."""
    return [future.wait() for future in collect_all(futures).wait()]
