"""A pipe has one iterator at a time: making another one ends the first, which says so when it is asked for more."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

_THROWN_BY = "This exception is thrown by __iter__ of "


def described(pipe: Any) -> str:
    """The pipe's class, with those of its arguments that it keeps under their own names."""
    parameters = sorted(inspect.signature(type(pipe).__init__).parameters)
    kept = {name: vars(pipe)[name] for name in parameters if name in vars(pipe)}
    shown = (f"{name}={getattr(value, '__name__', value)}" for name, value in kept.items())
    return f"{type(pipe).__name__}({', '.join(shown)})"


def invalidated(pipe: Any) -> RuntimeError:
    """The error of an iterator that another one has replaced."""
    return RuntimeError(
        "This iterator has been invalidated because another iterator has been created from the same IterDataPipe: "
        f"{described(pipe)}\nUse `.fork()` where a pipe is read twice at a time."
    )


class SoleIterator(Iterator[Any]):
    """An iterator over a pipe that is good for as long as it is the pipe's last one."""

    def __init__(self, pipe: Any, source: Iterator[Any]) -> None:
        self._pipe = pipe
        self._source = source
        self._number = pipe._valid_iterator_id

    def __next__(self) -> Any:
        pipe = self._pipe
        if pipe._valid_iterator_id != self._number:
            raise invalidated(pipe)
        try:
            sample = next(self._source)
        except StopIteration:
            raise
        except Exception as error:
            _say_where(error, pipe)
            raise
        pipe._number_of_samples_yielded += 1
        return sample

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def _say_where(error: Exception, pipe: Any) -> None:
    """Add to the message of an error which pipe raised it: once, where it came from."""
    first, *others = error.args or ("",)
    if isinstance(first, str) and _THROWN_BY not in first and "iterator has been invalidated" not in first:
        error.args = (f"{first}\n{_THROWN_BY}{described(pipe)}", *others)


def one_at_a_time(begin: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """The `__iter__` of a class of pipes, with the rule."""

    @functools.wraps(begin)
    def __iter__(self: Any) -> Iterator[Any]:
        self._valid_iterator_id += 1
        self._number_of_samples_yielded = 0
        self.reset()
        return SoleIterator(self, begin(self))

    return __iter__
