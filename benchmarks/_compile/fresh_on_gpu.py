"""One step on a GPU in a process of its own: how long its first calls take, and the peaks of the device's memory.

python -m _compile.fresh_on_gpu 'MLP, batch 64' 1   # in the folder of the benchmarks; compiled; prints JSON
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import _measure
from _train_steps.cuda import WORKLOADS
from _train_steps.fresh import printed_by

_FIRST = 7
"""The fourth call of a compiled function is a program, the seventh a graph."""
_LATER = 3


@dataclass(frozen=True)
class Fresh:
    """Seconds of the longest of the first calls; megabytes of the most memory in use meanwhile, of the most in later
    calls, and of the most that was taken from the device."""

    longest: float
    first: float
    later: float
    reserved: float


def run_fresh(workload: str, compiled: bool, cache: Path) -> Fresh:
    """Start the process. `cache` is where compiled kernels are kept."""
    kernels = str(cache / "kernels")
    return Fresh(*printed_by("_compile.fresh_on_gpu", workload, int(compiled), cache=cache, CUPY_CACHE_DIR=kernels))


def _peak(cuda: Any, step: Any, calls: int) -> tuple[list[float], float]:
    """Seconds of calls, and the most megabytes in use meanwhile."""
    cuda.reset_peak_memory_stats()
    seconds = []
    for _ in range(calls):
        begin = perf_counter()
        step()
        cuda.synchronize()
        seconds.append(perf_counter() - begin)
    return seconds, cuda.max_memory_allocated() / 1e6


def main() -> None:
    """Build, then call."""
    flambeau = _measure.load("flambeau")
    step = next(each for each in WORKLOADS if each.name == sys.argv[1]).build(flambeau)
    if sys.argv[2] == "1":
        step = flambeau.compile(step)
    seconds, first = _peak(flambeau.cuda, step, _FIRST)
    before = flambeau.cuda.max_memory_reserved() / 1e6
    _, later = _peak(flambeau.cuda, step, _LATER)
    reserved = max(before, flambeau.cuda.max_memory_reserved() / 1e6)
    print(json.dumps([max(seconds), first, later, reserved]))


if __name__ == "__main__":
    main()
