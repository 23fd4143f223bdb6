"""Whether a program is being traced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

_DEPTH = [0]


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """A context in which a program is being traced."""
    _DEPTH[0] += 1
    try:
        yield
    finally:
        _DEPTH[0] -= 1


def is_fx_tracing() -> bool:
    """Whether a graph is being recorded."""
    return _DEPTH[0] > 0


is_fx_symbolic_tracing = is_fx_tracing
