"""Processes that run commands."""

from __future__ import annotations

from typing import Any

from .subprocess_handler import SubprocessHandler

__all__ = ["SubprocessHandler", "get_subprocess_handler"]


def get_subprocess_handler(
    entrypoint: str,
    args: tuple[Any, ...],
    env: dict[str, str],
    stdout: str,
    stderr: str,
    local_rank_id: int,
    numa_options: Any = None,
) -> SubprocessHandler:
    """Start a command as a process of its own."""
    return SubprocessHandler(entrypoint, args, env, stdout, stderr, local_rank_id, numa_options)
