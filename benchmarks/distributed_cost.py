"""A model of what collectives cost: fitted on groups of 2 and 4 processes, checked on 8, computed for up to 1,024.

python benchmarks/distributed_cost.py

Measured is the processor time of a call, which other work on the machine changes little: so much for each round in
which processes wait for each other, for each message, for each byte that is copied and for each byte that is combined.
How many there are follows from the algorithms (`counts`). Computed is the time of a call where each process has a
processor of its own: the processor time, and for each round the network's latency and for the bytes its bandwidth.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from distributed import measured

from flambeau.distributed._mesh.algorithms import CHUNK, SMALL
from flambeau.distributed._mesh.shared import SHORT_BROADCAST

FITTED, CHECKED = (2, 4), (8,)
SIZES = (4, 4_096, 65_536, 262_144, 1_048_576, 4_194_304)
"""Bytes."""
COMPUTED = (16, 64, 256, 1024)
LATENCY = 20.0
"""Microseconds from one machine to another, of the network that is computed with."""
BANDWIDTH = 12_500.0
"""Bytes of it in a microsecond: 100 Gbit/s."""
_ROUND = 1 << 23
_BROADCAST = 1 << 20


class Counts(NamedTuple):
    """What a process does in a call."""

    rounds: float
    messages: float
    copied: float
    """Bytes, into connections or shared memory and out of them."""
    combined: float
    """Bytes."""
    sent: float = 0
    """Bytes that a network carries."""

    def of_a_processor(self) -> list[float]:
        """What a processor does."""
        return [self.rounds, self.messages, self.copied, self.combined]


def counts(kind: str, nbytes: int, processes: int, shared: bool) -> Counts:
    """What the algorithms of `flambeau/distributed/_mesh` do; see there."""
    others, levels = processes - 1, math.ceil(math.log2(processes))
    if kind == "barrier":
        return Counts(levels, levels, 0, 0)
    if kind == "broadcast":
        if shared and nbytes > SHORT_BROADCAST:
            pieces = math.ceil(nbytes / _BROADCAST)
            return Counts(2, others * pieces, 2 * nbytes, 0)
        pieces = math.ceil(nbytes / CHUNK)
        return Counts(levels, levels * pieces, levels * nbytes, 0, levels * nbytes)
    if kind == "all_gather":
        if shared and nbytes > SMALL:
            pieces = math.ceil(nbytes / _ROUND)
            return Counts(2 * pieces, 2 * others * pieces, nbytes * (2 + others), 0)
        return Counts(1, others * math.ceil(nbytes / CHUNK), nbytes * (1 + 2 * others), 0, others * nbytes)
    part = nbytes * others / processes
    if nbytes <= SMALL:
        return Counts(levels, levels, 2 * levels * nbytes, levels * nbytes, levels * nbytes)
    if shared:
        pieces = math.ceil(nbytes / _ROUND)
        return Counts(2 * pieces, 2 * others * pieces, 3 * part, part)
    return Counts(2, 2 * others * math.ceil(nbytes / processes / CHUNK), 4 * part, part, 2 * part)


class Model:
    """Microseconds of a processor for each thing that is counted."""

    def __init__(self, times: dict[int, dict[str, float]], shared: bool) -> None:
        self._shared = shared
        cases = [(label, size, found) for size in FITTED for label, found in times[size].items()]
        rows = [[each / found for each in self.counts(label, size).of_a_processor()] for label, size, found in cases]
        self.costs = _not_negative(np.array(rows), np.ones(len(rows)))  # errors count by their ratio

    def counts(self, label: str, processes: int) -> Counts:
        """What a process does in a call."""
        kind, _, size = label.partition(" ")
        return counts(kind, int(size.replace(",", "") or 0), processes, self._shared)

    def processor_time(self, label: str, processes: int) -> float:
        """Microseconds of a processor."""
        return float(np.dot(self.counts(label, processes).of_a_processor(), self.costs))

    def over_a_network(self, label: str, processes: int) -> float:
        """Microseconds by the clock, with a processor and a connection for each process."""
        found = self.counts(label, processes)
        return self.processor_time(label, processes) + found.rounds * LATENCY + found.sent / BANDWIDTH


def _not_negative(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Least squares; what would cost less than nothing costs nothing."""
    used = list(range(rows.shape[1]))
    while True:
        found, *_ = np.linalg.lstsq(rows[:, used], values, rcond=None)
        if (found >= 0).all():
            costs = np.zeros(rows.shape[1])
            costs[used] = found
            return costs
        used.pop(int(np.argmin(found)))


def report(name: str, times: dict[int, dict[str, float]]) -> None:
    """The costs, the model beside what was measured, and what it says of more processes."""
    model = Model(times, name == "Flambeau")
    per_round, per_message, per_byte, per_combined = model.costs
    title = "shared memory" if name == "Flambeau" else "sockets"
    print(f"\n{title}: {per_round:.1f} us a round, {per_message:.1f} us a message, ", end="")
    print(f"{_speed(per_byte)} copied, {_speed(per_combined)} combined")
    sizes = sorted(times)
    print(f"{'':24}" + "".join(f"{f'{size}: measured':>14}{'model':>10}{'ratio':>7}" for size in sizes))
    errors: dict[int, list[float]] = {size: [] for size in sizes}
    for label in times[sizes[0]]:
        cells = ""
        for size in sizes:
            found, said = times[size][label], model.processor_time(label, size)
            errors[size].append(abs(math.log(said / found)))
            cells += f"{found:14.0f}{said:10.0f}{said / found:7.2f}"
        print(f"{label:24}{cells}")
    typical = ", ".join(f"{math.exp(float(np.median(each))):.2f} ({size})" for size, each in errors.items())
    print(f"typical ratio between model and measurement: {typical}")
    if name == "sockets":
        print(f"computed, microseconds, {LATENCY:.0f} us and {BANDWIDTH / 125:.0f} Gbit/s between any two processes:")
        print(f"{'':24}" + "".join(f"{size:>12,}" for size in COMPUTED))
        for label in times[sizes[0]]:
            print(f"{label:24}" + "".join(f"{model.over_a_network(label, size):12.0f}" for size in COMPUTED))


def _speed(microseconds_per_byte: float) -> str:
    return "nothing for what is" if microseconds_per_byte == 0 else f"{1e-3 / microseconds_per_byte:.2f} GB/s"


def main() -> int:
    """Measure, fit, check and compute."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.15, help="for each case and round")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="a file of measurements: read if it is there, else written")
    options = parser.parse_args()
    if options.keep is not None and options.keep.exists():
        read = json.loads(options.keep.read_text())
        times = {name: {int(size): found for size, found in each.items()} for name, each in read.items()}
    else:
        times = {name: {size: {} for size in (*FITTED, *CHECKED)} for name in ("Flambeau", "sockets")}
        for _ in range(options.rounds):
            for name, by_size in times.items():
                for size, best in by_size.items():
                    for label, value in measured(name, size, options.seconds, SIZES, False, True).items():
                        best[label] = min(value, best.get(label, math.inf))
        if options.keep is not None:
            options.keep.write_text(json.dumps(times))
    print(f"microseconds of a processor, for each process; fitted on {FITTED} processes, checked on {CHECKED}")
    for name, by_size in times.items():
        report(name, by_size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
