"""Errors of processes that a launcher started."""

from __future__ import annotations

import functools
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar, cast

from .error_handler import ErrorHandler, get_error_handler

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

Function = TypeVar("Function", bound=Callable[..., Any])


_UNKNOWN = "<N/A>"


@dataclass
class ProcessFailure:
    """A process that ended badly. What it left in its error file, if there is one, says why and when."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict[str, Any] = field(init=False)
    message: Any = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        self.error_file_data, self.message, self.timestamp = {"message": "<NONE>"}, "", int(time.time())
        if os.path.isfile(self.error_file):
            with open(self.error_file, encoding="utf-8") as file:
                self.error_file_data = json.load(file)
            self.message = self.error_file_data["message"]
            known = self.error_file_data if isinstance(self.message, str) else self.message["extraInfo"]
            self.timestamp = int(known.get("timestamp", 0))
        else:
            self.error_file = _UNKNOWN
        if not self.message and self.exitcode < 0:
            self.message = f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"

    def signal_name(self) -> str:
        """The name of the signal that ended the process."""
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return _UNKNOWN

    def timestamp_isoformat(self) -> str:
        """When it happened, in words."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")

    def __str__(self) -> str:
        how = f"killed by {self.signal_name()}" if self.exitcode < 0 else f"exit code {self.exitcode}"
        text = self.message if isinstance(self.message, str) else self.message.get("message", _UNKNOWN)
        return f"local rank {self.local_rank}, process {self.pid}: {how}" + (f"\n    {text}" if text else "")


class ChildFailedError(Exception):
    """A process that was started has failed."""

    def __init__(self, name: str, failures: Mapping[int, ProcessFailure]) -> None:
        self.name = name
        self.failures = dict(failures)
        lines = [f"rank {rank}, {failure}" for rank, failure in self.failures.items()]
        super().__init__("\n".join([f"{name} failed:", *lines]))

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and how."""
        rank = min(self.failures, key=lambda each: self.failures[each].timestamp)
        return rank, self.failures[rank]


def record(fn: Function, error_handler: ErrorHandler | None = None) -> Function:
    """Let an error of the function be written where the launcher looks for it."""
    own = error_handler or get_error_handler()

    @functools.wraps(fn)
    def noting(*args: Any, **kwargs: Any) -> Any:
        own.initialize()
        try:
            return fn(*args, **kwargs)
        except ChildFailedError as error:  # of a launcher below this one: its first failure says why
            _, failure = error.get_first_failure()
            if os.path.isfile(failure.error_file):
                own.dump_error_file(failure.error_file, failure.exitcode)
            else:
                own.record_exception(error)
            raise
        except Exception as error:
            own.record_exception(error)
            raise

    return cast(Function, noting)
