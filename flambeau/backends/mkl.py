"""Intel's math library, which Flambeau does not call."""

from __future__ import annotations

VERBOSE_OFF = 0
VERBOSE_ON = 1


def is_available() -> bool:
    """Whether kernels use it."""
    return False


class verbose:
    """A context in which the library says what it does; it is not called."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *exception: object) -> None:
        pass
