"""Runs the whole operator database over several processes, compares with the list of known gaps, writes the pages."""

from __future__ import annotations

import argparse
import fnmatch
import functools
import json
import os
import sys
import time
from pathlib import Path

from tests.support.workers import Broken, Work, Workers

from . import pages
from .run import Report

_PATIENCE = 600
"""Seconds after which an entry counts as hanging."""


def _prepare(limit: int | None, only: str, in_states: bool) -> Work:
    """What examines entries by number; each process has one thread, the others are the parallelism."""
    import torch as pytorch

    from .entries import entries
    from .run import examine

    pytorch.set_num_threads(1)
    everything = entries()
    return lambda number: examine(everything[number], limit, only, in_states)


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
    parser.add_argument(
        "--states", action="store_true", help="in further states: transforms, modes, compilers; see states.py"
    )
    parser.add_argument("--results", type=Path, help="append reports here, and leave out what has one: to go on later")
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
    reports = _reports_in(options.results)
    prepare = functools.partial(_prepare, options.limit, options.aspect, options.states)
    waiting = [number for number in chosen if everything[number].name not in reports]
    for number, result in Workers(options.jobs, prepare, _PATIENCE).results(waiting):
        name = everything[number].name
        report: Report = _broken(result.reason) if isinstance(result, Broken) else result
        reports[name] = report
        if options.results:
            with options.results.open("a") as file:
                file.write(json.dumps({name: report}) + "\n")
        if options.only:
            _print(name, report)
        else:
            _progress(len(reports), len(chosen), name)
    if options.json:
        options.json.write_text(json.dumps(reports, indent=1, sort_keys=True) + "\n")
    whole = not (options.only or options.aspect or options.limit)
    found = pages.gaps_in(reports)
    known = pages.KNOWN_IN_STATES if options.states else pages.KNOWN
    if whole and options.update:
        pages.write_known_gaps(found, known)
    if whole and options.states:
        _print_states(reports)
    elif whole:
        main_dtypes = {entry.name: short(entry.main_dtype) for entry in everything if entry.dtypes}
        pages.write_pages(reports, main_dtypes, version.partition("+")[0])
        print(pages.summary(reports, main_dtypes))
    passed = len(reports) - len(found)
    print(f"{passed} of {len(reports)} entries pass in all that was checked, {time.monotonic() - began:.0f} s")
    return _verdict(found, pages.known_gaps(known), list(reports), judged=whole)


def _reports_in(results: Path | None) -> dict[str, Report]:
    """The reports of an earlier run that is gone on with."""
    lines = results.read_text().splitlines() if results is not None and results.exists() else []
    return {name: report for line in lines for name, report in json.loads(line).items()}


def _print_states(reports: dict[str, Report]) -> None:
    """How many samples agree, state by state."""
    counts: dict[str, list[int]] = {}
    for report in reports.values():
        for aspect, result in report.items():
            total = counts.setdefault(aspect, [0, 0])
            total[0] += result["checked"] - result["failed"]
            total[1] += result["checked"]
    for aspect, (passed, checked) in counts.items():
        print(f"{aspect:20} {passed:6} of {checked}")


def _verdict(found: pages.Gaps, known: pages.Gaps, examined: list[str], judged: bool) -> int:
    """0 where exactly the listed gaps are there; a partial run cannot tell that a listed gap is closed."""
    new, stale = pages.surprises(found, known, iter(examined))
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
