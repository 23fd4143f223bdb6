"""One case in a process of its own: how long its first calls take, and how much memory.

python -m _compile.fresh 'MLP of 32, step' 1 0   # in the folder of the benchmarks; compiled; prints JSON
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import _measure
from _train_steps.fresh import peak_megabytes, printed_by, start_of_peak, status_megabytes

from .cases import CASES

CALLS = 6


@dataclass(frozen=True)
class Fresh:
    """Seconds of the longest of the first calls, which of them that is, and seconds of the shortest, which are the work
    itself; megabytes by which they raised peaks: of resident memory, which is code and all that Python makes, too, and
    of the memory of large arrays."""

    seconds: float
    call: int
    shortest: float
    megabytes: float
    array_megabytes: float


def run_fresh(case: str, compiled: bool, cache: Path, loaded: bool = False) -> Fresh:
    """Start the process. `loaded`: the code generator is in memory before the first call."""
    return Fresh(*printed_by("_compile.fresh", case, int(compiled), int(loaded), cache=cache))


def large_arrays() -> tuple[float, float]:
    """The megabytes that arrays of 128 KB or more take now, and took at most since this was last asked."""
    from flambeau._backends.cpu.memory.allocator import allocator

    pool = allocator()
    if pool is None:
        return 0.0, 0.0
    found = pool["allocated"] / 2**20, pool["allocated_peak"] / 2**20
    pool.reset_peaks()
    return found


def main() -> None:
    """Build, then call."""
    flambeau = _measure.load("flambeau")
    flambeau.manual_seed(0)
    call = CASES[sys.argv[1]](flambeau)
    if sys.argv[2] == "1":
        call = flambeau.compile(call)
    if sys.argv[3] == "1":
        flambeau.ones(5000).exp()
    arrays, _ = large_arrays()
    start = start_of_peak()
    before = peak_megabytes() if start is None else start
    seconds = []
    for _ in range(CALLS):
        begin = perf_counter()
        call()
        seconds.append(perf_counter() - begin)
    longest = max(seconds)
    after = peak_megabytes() if start is None else status_megabytes("VmHWM")
    which = 1 + seconds.index(longest)
    print(json.dumps([longest, which, min(seconds), after - before, large_arrays()[1] - arrays]))


if __name__ == "__main__":
    main()
