"""Runs the whole operator database over several processes, compares with the list of known gaps, writes the pages."""

from __future__ import annotations

import argparse
import fnmatch
import json
import multiprocessing
import multiprocessing.connection
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import pages
from .run import Report

_PATIENCE = 600
"""Seconds after which an entry counts as hanging."""


def _worker(channel: multiprocessing.connection.Connection, limit: int | None, only: str) -> None:
    """Examines entries by number until told to stop; each process has one thread, the others are the parallelism."""
    import torch as pytorch

    from .entries import entries
    from .run import examine

    pytorch.set_num_threads(1)
    everything = entries()
    channel.send(None)
    while (number := channel.recv()) is not None:
        channel.send(examine(everything[number], limit, only))


class _Pool:
    """Processes that examine entries; one that crashes or hangs is replaced, and its entry reported.

    A pool of one works in this process, which a debugger can step through.
    """

    def __init__(self, jobs: int, limit: int | None, only: str) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._settings = (limit, only)
        self._jobs = jobs

    def _start(self) -> tuple[Any, multiprocessing.connection.Connection]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_worker, args=(theirs, *self._settings), daemon=True)
        process.start()
        theirs.close()
        ours.recv()
        return process, ours

    def examine(self, numbers: list[int]) -> Iterator[tuple[int, Report]]:
        """The report of each entry, as they become ready."""
        if self._jobs == 1:
            from .entries import entries
            from .run import examine

            everything = entries()
            for number in numbers:
                yield number, examine(everything[number], *self._settings)
            return
        waiting = list(reversed(numbers))
        busy: dict[Any, tuple[Any, int, float]] = {}
        for _ in range(min(self._jobs, len(numbers))):
            process, channel = self._start()
            self._give(channel, process, waiting, busy)
        while busy:
            ready = multiprocessing.connection.wait(list(busy), timeout=5)
            now = time.monotonic()
            for channel, (process, number, began) in list(busy.items()):
                if channel in ready:
                    try:
                        report = channel.recv()
                    except EOFError:
                        report = _broken("the process crashed")
                        process, channel = self._replaced(process, channel, busy)
                elif now - began > _PATIENCE:
                    report = _broken(f"no answer in {_PATIENCE} s")
                    process, channel = self._replaced(process, channel, busy)
                else:
                    continue
                busy.pop(channel, None)
                yield number, report
                self._give(channel, process, waiting, busy)

    def _replaced(self, process: Any, channel: Any, busy: dict[Any, Any]) -> tuple[Any, Any]:
        busy.pop(channel)
        process.kill()
        return self._start()

    def _give(self, channel: Any, process: Any, waiting: list[int], busy: dict[Any, Any]) -> None:
        if waiting:
            number = waiting.pop()
            channel.send(number)
            busy[channel] = (process, number, time.monotonic())
        else:
            channel.send(None)


def _broken(reason: str) -> Report:
    return {"values float32": {"checked": 1, "failed": 1, "examples": [reason], "seconds": 0}}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--only", action="append", help="glob of entry names, e.g. 'linalg.*'; may be repeated")
    parser.add_argument("--aspect", default="", help="only aspects that begin with this, e.g. gradient")
    parser.add_argument("--limit", type=int, help="at most so many samples for each aspect")
    parser.add_argument(
        "--device", choices=("cpu", "foreign", "cuda", "simulated"), default="cpu",
        help="foreign: what stands in for a GPU; simulated: the CUDA backend on the host's memory",
    )  # fmt: skip
    parser.add_argument("--every", type=int, default=1, help="of the entries on another device every so manieth")
    parser.add_argument("--gradients", action="store_true", help="on another device: gradients in place of results")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; 1: this one")
    parser.add_argument("--json", type=Path, help="write the full report here")
    parser.add_argument("--update", action="store_true", help="after a whole run, write the list of known gaps anew")
    return parser


def main() -> int:
    """The command."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    options = _parser().parse_args()
    if options.device != "cpu":
        from . import foreign

        return foreign.main(options.device, options.only, options.limit, options.every, options.gradients)
    from torch import __version__ as version

    from .entries import entries
    from .run import short

    everything = entries()
    chosen = [
        number
        for number, entry in enumerate(everything)
        if not options.only or any(fnmatch.fnmatch(entry.name, pattern) for pattern in options.only)
    ]
    began = time.monotonic()
    reports: dict[str, Report] = {}
    for number, report in _Pool(options.jobs, options.limit, options.aspect).examine(chosen):
        name = everything[number].name
        reports[name] = report
        if options.only:
            _print(name, report)
        else:
            _progress(len(reports), len(chosen), name)
    if options.json:
        options.json.write_text(json.dumps(reports, indent=1, sort_keys=True) + "\n")
    whole = not (options.only or options.aspect or options.limit)
    found = pages.gaps_in(reports)
    if whole and options.update:
        pages.write_known_gaps(found)
    if whole:
        main_dtypes = {entry.name: short(entry.main_dtype) for entry in everything if entry.dtypes}
        pages.write_pages(reports, main_dtypes, version.partition("+")[0])
        print(pages.summary(reports, main_dtypes))
    passed = len(reports) - len(found)
    print(f"{passed} of {len(reports)} entries pass in all that was checked, {time.monotonic() - began:.0f} s")
    return _verdict(found, list(reports), judged=whole)


def _verdict(found: pages.Gaps, examined: list[str], judged: bool) -> int:
    """0 where exactly the listed gaps are there; a partial run cannot tell that a listed gap is closed."""
    new, stale = pages.surprises(found, pages.known_gaps(), iter(examined))
    if judged:
        for line in new:
            print(f"not in the list of known gaps: {line}")
        for line in stale:
            print(f"passes now, take it off the list of known gaps: {line}")
    return int(bool(new or (judged and stale)))


def _print(name: str, report: Report) -> None:
    failing = {aspect: result for aspect, result in report.items() if result["failed"]}
    print(f"{'FAIL' if failing else 'ok  '} {name}")
    for aspect, result in failing.items():
        print(f"     {aspect}: {result['failed']} of {result['checked']}")
        for example in result["examples"]:
            print(f"        {example}")
    sys.stdout.flush()


def _progress(done: int, total: int, name: str) -> None:
    end = "\r" if sys.stdout.isatty() else "\n"
    if sys.stdout.isatty() or done % 20 == 0 or done == total:
        print(f"{done:4} of {total} {name:50.50}", end=end, flush=True)
