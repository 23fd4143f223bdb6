"""Processes that a launcher starts, under the names of `torch.distributed.elastic.multiprocessing`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .api import (
    DefaultLogsSpecs,
    LogsDest,
    LogsSpecs,
    MultiprocessContext,
    PContext,
    RunProcsResult,
    SignalException,
    Std,
    SubprocessContext,
    to_map,
)
from .errors import ProcessFailure

__all__ = [
    "DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "PContext", "ProcessFailure",
    "RunProcsResult", "SignalException", "Std", "SubprocessContext", "start_processes", "to_map",
]  # fmt: skip


def start_processes(
    name: str,
    entrypoint: Callable[..., Any] | str,
    args: dict[int, tuple[Any, ...]],
    envs: dict[int, dict[str, str]],
    logs_specs: LogsSpecs,
    log_line_prefixes: dict[int, str] | None = None,
    start_method: str = "spawn",
    numa_options: Any = None,
    duplicate_stdout_filters: list[str] | None = None,
    duplicate_stderr_filters: list[str] | None = None,
) -> PContext:
    """Start a function or a command in as many processes as there are arguments, by local rank."""
    further = (numa_options, duplicate_stdout_filters, duplicate_stderr_filters)
    made: PContext
    if isinstance(entrypoint, str):
        made = SubprocessContext(name, entrypoint, args, envs, logs_specs, log_line_prefixes, *further)
    else:
        made = MultiprocessContext(name, entrypoint, args, envs, start_method, logs_specs, log_line_prefixes, *further)
    try:
        made.start()
    except Exception:
        made.close()
        raise
    return made
