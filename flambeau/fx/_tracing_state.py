"""Whether a program is being traced: by this thread, others do not matter."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class _Depth(threading.local):
    traces = 0


_DEPTH = _Depth()


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """A context in which a program is being traced."""
    _DEPTH.traces += 1
    try:
        yield
    finally:
        _DEPTH.traces -= 1


def is_fx_tracing() -> bool:
    """Whether a graph is being recorded."""
    return _DEPTH.traces > 0


is_fx_symbolic_tracing = is_fx_tracing
