"""Where NVIDIA's profilers look."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ._device import cudart


def start() -> None:
    """Let them look from now on."""
    cudart().cudaProfilerStart()


def stop() -> None:
    """Let them look no more."""
    cudart().cudaProfilerStop()


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """A context at which they look."""
    start()
    try:
        yield
    finally:
        stop()
