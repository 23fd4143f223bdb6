"""What several processes did, in one file: `export_trace(prof, "trace.json")`, called on each of them.

with flambeau.profiler.profile() as prof:
    step()
flambeau.distributed.profiling.export_trace(prof, "trace.json")
"""

from __future__ import annotations

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

__all__ = ["export_trace"]

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
