"""Runs random programs of a kind, for so many seconds or seeds, and prints the shortest form of each that fails.

    python -m tests.fuzz training --seconds 600 --jobs 16
    python -m tests.fuzz training --seed 1234 --count 1        the program of one seed again
    python -m tests.fuzz all --seconds 3600 --seed 1000000     an hour of each kind, on all cores
    python -m tests.fuzz all --seconds 60 --brief              a line for each seed that fails

A program that ends its process runs once more under Flambeau alone: what PyTorch does to itself is counted, and is no
failure. A failure is printed as a script that runs by itself. Failures of the same kind (the same error at the same
line) are printed in full `--each` times, and counted.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.support.workers import Broken, Work, Workers

from .kinds import KINDS
from .program import Failure, script, shrink

_PATIENCE = 300
"""Seconds after which a program counts as hanging; most of them go to shrinking one that fails."""


class Found(NamedTuple):
    """What became of a seed: nothing, or a failure and the script that shows it."""

    failure: Failure | None = None
    script: str = ""


def examine(kind: str, seed: int, brief: bool = False) -> Found:
    """Write the program of a seed, run it, and make it short if it fails; if brief, leave it as long as it is."""
    writer = KINDS[kind]
    program = writer.write(seed)
    failure = writer.judge(program)
    if failure is None or brief:
        return Found(failure)
    program = shrink(program, writer.judge, failure.kind)
    return Found(writer.judge(program) or failure, script(program))


def _prepare(kind: str, brief: bool) -> Work:
    from tests.support.oracle import pytorch

    if pytorch is not None:
        pytorch.set_num_threads(1)
    return functools.partial(examine, kind, brief=brief)


def _alone(kind: str) -> Work:
    """Runs the program of a seed under Flambeau, and compares nothing."""
    writer = KINDS[kind]
    return lambda seed: writer.alone(writer.write(seed))


def _ends_alone(kind: str, seed: int) -> bool:
    """Whether it is Flambeau under which a program ends its process, or hangs."""
    work: Any = Workers(2, functools.partial(_alone, kind), _PATIENCE)
    return any(isinstance(result, Broken) for _, result in work.results([seed]))


def _seeds(first: int, seconds: float, count: int | None) -> Iterator[int]:
    end = time.monotonic() + seconds
    for seed in itertools.islice(itertools.count(first), count):
        if count is None and time.monotonic() > end:
            return
        yield seed


class _Tally:
    """Counts programs and failures, and prints both."""

    def __init__(self, kind: str, each: int, brief: bool) -> None:
        self._kind, self._each, self._brief = kind, each, brief
        self._began = self._told = time.monotonic()
        self.programs = 0
        self.ended = 0
        """Programs in which PyTorch ended the process."""
        self.failures: Counter[tuple[str, str]] = Counter()

    def add(self, seed: int, found: Found | Broken) -> None:
        self.programs += 1
        if isinstance(found, Broken) and not _ends_alone(self._kind, seed):
            self.ended += 1
            found = Found()
        elif isinstance(found, Broken):
            found = Found(
                Failure("this process", found.reason, f"python -m tests.fuzz {self._kind} --seed {seed} --count 1")
            )
        if found.failure is not None:
            self.failures[found.failure.kind] += 1
            if self._brief:
                print(
                    f"{self._kind} {seed}: {found.failure.runs}: {found.failure.about}: {found.failure.detail}",
                    flush=True,
                )
            elif self.failures[found.failure.kind] <= self._each:
                print(f"\n# seed {seed}: {found.failure.runs}: {found.failure.about}\n# {found.failure.detail}")
                print(found.script, flush=True)
        if time.monotonic() - self._told > 10:
            self._told = time.monotonic()
            print(self.line(), file=sys.stderr, flush=True)

    def line(self) -> str:
        passed = time.monotonic() - self._began
        theirs = f" ({self.ended} end PyTorch)" if self.ended else ""
        return f"{self._kind}: {self.programs:,} programs{theirs}, {self.failures.total()} fail, {passed:.0f} s"

    def end(self) -> None:
        for (runs, about), count in self.failures.most_common():
            print(f"{count:6} {runs}: {about}")
        print(self.line(), flush=True)


def main() -> int:
    """The command; 1 if a program failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=(*KINDS, "all"), help="what to write; all: one kind after the other")
    parser.add_argument("--seconds", type=float, default=60, help="for each kind")
    parser.add_argument("--count", type=int, help="so many seeds in place of so many seconds")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; 1: this one")
    parser.add_argument("--each", type=int, default=2, help="failures of one kind that are printed in full")
    parser.add_argument("--brief", action="store_true", help="print a line for each failure, and make no program short")
    parser.add_argument("--patience", type=float, default=300, help="seconds after which a program counts as hanging")
    parser.add_argument("--show", action="store_true", help="print the program of the seed, and run nothing")
    options = parser.parse_args()
    if options.show:
        print(script(KINDS[options.kind].write(options.seed)))
        return 0
    lines = []
    failed = False
    for kind in KINDS if options.kind == "all" else (options.kind,):
        tally = _Tally(kind, options.each, options.brief)
        seeds = _seeds(options.seed, options.seconds, options.count)
        workers: Any = Workers(options.jobs, functools.partial(_prepare, kind, options.brief), options.patience)
        for seed, found in workers.results(seeds):
            tally.add(seed, found)
        tally.end()
        lines.append(tally.line())
        failed |= bool(tally.failures)
    if len(lines) > 1:
        print("", *lines, sep="\n")
    return int(failed)
