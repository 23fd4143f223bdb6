"""Process-wide settings that scripts make: threads, determinism."""

from __future__ import annotations

import os


class _Settings:
    """The present settings."""

    __slots__ = ("deterministic", "threads")

    def __init__(self) -> None:
        self.threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.deterministic = False


_SETTINGS = _Settings()


def get_num_threads() -> int:
    """How many threads kernels may use."""
    return _SETTINGS.threads


def set_num_threads(number: int) -> None:
    """Choose how many threads kernels may use. The NumPy kernels use one, whatever is set."""
    if not isinstance(number, int):
        raise TypeError(f"set_num_threads expects an int, but got {type(number).__name__}")
    if number <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    _SETTINGS.threads = number


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for deterministic kernels. All NumPy kernels are."""
    _SETTINGS.deterministic = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic kernels were asked for."""
    return _SETTINGS.deterministic
