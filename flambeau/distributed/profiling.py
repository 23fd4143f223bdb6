"""What several processes did, in one file: `export_trace(prof, "trace.json")`, called on each of them.

with flambeau.profiler.profile() as prof:
    step()
flambeau.distributed.profiling.export_trace(prof, "trace.json")
"""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from .._core.device import CPU
from .._core.tensor import Tensor, wrap
from ..autograd.profiler_util import write_trace
from . import _objects, _points
from ._world import ProcessGroup, group_of

__all__ = ["export_trace", "overlap"]

_LOOKS = 10
"""How often two clocks are compared: the quickest answer is the most exact."""


def export_trace(prof: Any, path: str | os.PathLike[str], group: ProcessGroup | None = None) -> None:
    """Write the profiles of all processes of a group into one file for chrome://tracing and Perfetto.

    Each process is a row with its ops; what was under way between processes is shown from its start to its end, beside
    the ops that ran meanwhile. The times are those of the first process's clock.

    Args:
        prof: the profile of this process.
        path: the file, which the first process of the group writes.
        group: the processes, all of them by default.
    """
    found = group_of(group)
    rank, size = found.rank(), found.size()
    machines: list[Any] = [None] * size
    _objects.all_gather_object(machines, _machine(), found)
    shift = 0.0
    for other in range(1, size):
        if machines[other] != machines[0] and rank in (0, other):
            shift = _behind_the_first(found, other)
    name = f"rank {rank} (process {os.getpid()} on {platform.node()})"
    own = prof.events().trace_events(rank, name, shift)
    everyone: list[Any] | None = [None] * size if rank == 0 else None
    _objects.gather_object(own, everyone, group=found, group_dst=0)
    if everyone is not None:
        ranks = {"distributedInfo": {"backend": found.name(), "rank": rank, "world_size": size}}
        write_trace(path, [event for events in everyone for event in events], ranks)


def overlap(path: str | os.PathLike[str]) -> dict[int, tuple[float, float]]:
    """By rank, for how many microseconds something was under way between processes, and in how many of these the rank
    ran ops: what `export_trace` has written says how much of the exchange is hidden.
    """
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    found = {}
    for rank in sorted({event["pid"] for event in events}):
        own = [event for event in events if event["pid"] == rank]
        begun = {event["id"]: event["ts"] for event in own if event["ph"] == "b"}
        under_way = _joined([(begun[event["id"]], event["ts"]) for event in own if event["ph"] == "e"])
        ops = _joined([(event["ts"], event["ts"] + event["dur"]) for event in own if event["ph"] == "X"])
        common = sum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a in under_way for b in ops)
        found[rank] = sum(end - start for start, end in under_way), common
    return found


def _joined(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Times without overlaps: each moment counts once."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def _machine() -> str:
    """What processes with a common clock have in common."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        return platform.node()


def _behind_the_first(group: ProcessGroup, other: int) -> float:
    """By how many microseconds the clock of a member is behind that of the first one; called on both."""
    best, shift = float("inf"), 0.0
    for _ in range(_LOOKS):
        if group.rank() == other:
            asked = perf_counter_ns()
            _points.send(_clock(), group=group, group_dst=0)
            answer = _clock()
            _points.recv(answer, group=group, group_src=0)
            took = perf_counter_ns() - asked
            if took < best:
                best, shift = took, (int(answer._array[0]) - (asked + took / 2)) / 1e3
        else:
            _points.recv(_clock(), group=group, group_src=other)
            _points.send(_clock(), group=group, group_dst=other)
    return shift


def _clock() -> Tensor:
    return wrap(np.array([perf_counter_ns()], np.int64), CPU)
