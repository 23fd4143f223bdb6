"""Errors of processes that a launcher started."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from ..._launch.worker import write_error
from ..._launch.workers import Failure as ProcessFailure

__all__ = ["ChildFailedError", "ProcessFailure", "record"]

Function = TypeVar("Function", bound=Callable[..., Any])


class ChildFailedError(Exception):
    """A process that was started has failed."""

    def __init__(self, name: str, failures: Mapping[int, ProcessFailure]) -> None:
        self.name = name
        self.failures = dict(failures)
        super().__init__(f"{name} failed:\n" + "\n".join(str(failure) for failure in self.failures.values()))

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and how."""
        rank = min(self.failures, key=lambda each: self.failures[each].when)
        return rank, self.failures[rank]


def record(fn: Function, error_handler: Any = None) -> Function:
    """Let an error of the function be written where the launcher looks for it."""

    @functools.wraps(fn)
    def noting(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            write_error(error)
            raise

    return cast(Function, noting)
