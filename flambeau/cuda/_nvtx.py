"""Marks and ranges of time for NVIDIA's profilers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._backends.cuda.runtime.driver import driver
from .._core.device import usable_device

_depth = 0


def _library() -> Any:
    usable_device("cuda")
    return driver().library.nvtx


def mark(msg: str) -> None:
    """A mark at this moment."""
    _library().Mark(msg)


def range_push(msg: str) -> int:
    """Begin a range inside of the present one; returns how deep that was."""
    global _depth
    _library().RangePush(msg)
    _depth += 1
    return _depth - 1


def range_pop() -> int:
    """End the innermost range; returns how deep it was."""
    global _depth
    _library().RangePop()
    _depth -= 1
    return _depth


def range_start(msg: str) -> int:
    """Begin a range that `range_end` ends, wherever others begin and end."""
    return int(_library().RangeStart(msg))


def range_end(range_id: int) -> None:
    """End a range of `range_start`."""
    _library().RangeEnd(range_id)


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around the work of a `with` block, or of a function that it decorates."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
