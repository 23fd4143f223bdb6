"""Places for intermediate results: what is not needed any more makes room, and so does what is not there yet."""

from __future__ import annotations

import bisect
from collections.abc import Container, Sequence

from .schedule import Buffer, Launch, Place

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


Placed = list[tuple[int, int, tuple[int, int]]]
"""In a piece of memory from where to where something lies, and from which launch to which."""


def lodged(
    launches: Sequence[Launch], kept: Sequence[Place], elsewhere: Container[Buffer], hosts: Sequence[Buffer]
) -> dict[Buffer, tuple[Buffer, int]]:
    """The buffers that have room in one of the hosts until a launch first touches that, and where in it they begin."""
    alive = lifetimes([*launches, Launch((), kept, ())], elsewhere)
    untouched = {each: _first_touch(launches, each) for each in hosts}
    placed: dict[Buffer, Placed] = {each: [] for each in hosts}
    found: dict[Buffer, tuple[Buffer, int]] = {}
    for buffer, lifetime in _largest_first(alive):
        for host in hosts:
            if lifetime[1] < untouched[host]:
                start, end = _gap(placed[host], buffer, lifetime)
                if end <= host.size:
                    bisect.insort(placed[host], (start, end, lifetime))
                    found[buffer] = host, start
                    break
    return found


def arranged(
    launches: Sequence[Launch], kept: Sequence[Place], elsewhere: Container[Buffer]
) -> tuple[dict[Buffer, int], int]:
    """Where each buffer begins, and how much memory that takes; what is `kept` is looked at after the last launch.

    The largest are placed first, each into the lowest gap among those that live at the same time.
    """
    alive = lifetimes([*launches, Launch((), kept, ())], elsewhere)
    placed: Placed = []
    starts: dict[Buffer, int] = {}
    for buffer, lifetime in _largest_first(alive):
        start, end = _gap(placed, buffer, lifetime)
        bisect.insort(placed, (start, end, lifetime))
        starts[buffer] = start
    return starts, max([end for _, end, _ in placed], default=0)


def _first_touch(launches: Sequence[Launch], buffer: Buffer) -> int:
    """The first launch that reads or writes a buffer."""
    touching = (
        number
        for number, launch in enumerate(launches)
        if any(place.buffer is buffer for place in (*launch.reads, *launch.writes))
    )
    return next(touching, 0)


def _largest_first(alive: dict[Buffer, tuple[int, int]]) -> list[tuple[Buffer, tuple[int, int]]]:
    return sorted(alive.items(), key=lambda each: (-each[0].size, each[1]))


def _gap(placed: Placed, buffer: Buffer, lifetime: tuple[int, int]) -> tuple[int, int]:
    """From where to where a buffer has room among those that live at the same time."""
    size = -(-max(buffer.size, 1) // _ALIGNED) * _ALIGNED
    first, last = lifetime
    start = 0
    for begin, end, (from_, to) in placed:
        if begin >= start + size:  # they are sorted: here is a gap that is wide enough
            break
        if from_ <= last and first <= to:
            start = max(start, end)
    return start, start + size
