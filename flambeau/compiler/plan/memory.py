"""Places for intermediate results in one piece of memory: what is not needed any more makes room."""

from __future__ import annotations

import bisect
from collections.abc import Container, Sequence

from .sheet import Buffer, Launch, Place

_ALIGNED = 64


def lifetimes(launches: Sequence[Launch], elsewhere: Container[Buffer]) -> dict[Buffer, tuple[int, int]]:
    """For each buffer the first and the last launch that touches it, but for constants and what is elsewhere."""
    found: dict[Buffer, tuple[int, int]] = {}
    for number, launch in enumerate(launches):
        for place in (*launch.reads, *launch.writes):
            buffer = place.buffer
            if buffer.content is None and buffer not in elsewhere:
                found[buffer] = found.get(buffer, (number, number))[0], number
    return found


def arranged(
    launches: Sequence[Launch], kept: Sequence[Place], elsewhere: Container[Buffer]
) -> tuple[dict[Buffer, int], int]:
    """Where each buffer begins, and how much memory that takes; what is `kept` is looked at after the last launch.

    The largest are placed first, each into the lowest gap among those that live at the same time.
    """
    alive = lifetimes([*launches, Launch((), kept, ())], elsewhere)
    placed: list[tuple[int, int, tuple[int, int]]] = []
    starts: dict[Buffer, int] = {}
    for buffer, (first, last) in sorted(alive.items(), key=lambda each: (-each[0].size, each[1])):
        size = -(-max(buffer.size, 1) // _ALIGNED) * _ALIGNED
        start = 0
        for begin, end, (from_, to) in placed:
            if begin >= start + size:  # they are sorted: here is a gap that is wide enough
                break
            if from_ <= last and first <= to:
                start = max(start, end)
        bisect.insort(placed, (start, start + size, (first, last)))
        starts[buffer] = start
    return starts, max([end for _, end, _ in placed], default=0)
