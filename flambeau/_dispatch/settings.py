"""Process-wide settings that scripts make: threads, determinism."""

from __future__ import annotations

from .._core.threads import change_num_threads, num_threads


class _Settings:
    """The present settings."""

    __slots__ = ("deterministic",)

    def __init__(self) -> None:
        self.deterministic = False


_SETTINGS = _Settings()


def get_num_threads() -> int:
    """How many threads kernels may use."""
    return num_threads()


def set_num_threads(number: int) -> None:
    """Choose how many threads kernels may use, the calling one included."""
    if not isinstance(number, int):
        raise TypeError(f"set_num_threads expects an int, but got {type(number).__name__}")
    if number <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    from .._backends.cpu.blas import limit_threads

    change_num_threads(number)
    limit_threads(number)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for deterministic kernels. All NumPy kernels are."""
    _SETTINGS.deterministic = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic kernels were asked for."""
    return _SETTINGS.deterministic
