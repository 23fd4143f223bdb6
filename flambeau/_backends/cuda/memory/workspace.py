"""Memory for what a kernel needs while it runs: one piece for each queue, whose work is done in order."""

from __future__ import annotations

from typing import Any

from ..runtime.driver import driver
from ..runtime.synchronization import HERE

_MOST = 256 << 20
_LEAST = 1 << 20

_pieces: dict[tuple[int, int], tuple[int, Any]] = {}
"""For each device and queue, since the default queues of all devices have one handle."""


def scratch(nbytes: int, stream: int) -> tuple[int, Any]:
    """The address of so many bytes, and what keeps them alive until the kernels that use them are in the queue.

    What comes next in the queue may be given the same bytes. A graph that is recorded has its own: it runs later.
    """
    key = HERE.ordinal, stream
    found = _pieces.get(key)
    if found is not None and found[0] >= nbytes and HERE.recording is None:
        return found[1].ptr, found[1]
    if HERE.recording is not None or nbytes > _MOST:
        memory: Any = driver().allocate(nbytes)
        return memory.ptr, memory
    size = max(_LEAST, 1 << (nbytes - 1).bit_length())
    memory = driver().allocate(size)
    _pieces[key] = size, memory
    return memory.ptr, memory
