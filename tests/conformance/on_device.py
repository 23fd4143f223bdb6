"""The operator database on a device, by several processes: results, gradients, and what ran on the host.

    python -m tests.conformance.on_device --processes 14 --seconds 140   # on a GPU
    python -m tests.conformance.on_device --device simulated 'index*'    # some entries, without one

It prints how many entries agree with the CPU, those that do not, and the entries that compute something on the host and
are not in the list (`host_ops.json`). Entries that did not get their turn in the time are counted apart.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import multiprocessing
import time
import warnings
from typing import Any, NamedTuple

from .entries import entries
from .foreign import STANDS, examine, known_gaps
from .host import LIST, host_ops


class Outcome(NamedTuple):
    """What was found about an entry."""

    name: str
    results: str
    """What differs, or ""."""
    gradients: str
    host: list[str]


def _work(device: str, names: list[str], samples: int | None, until: float, found: Any) -> None:
    """One process: its entries, one after the other, until the time is over."""
    stand, wanted = STANDS[device](), set(names)
    warnings.simplefilter("ignore")
    for entry in [each for each in entries() if each.name in wanted]:
        if time.time() > until:
            break
        found.put(Outcome(entry.name, *_both(entry, stand, samples), host_ops(entry, stand.device)))
    found.put(None)


def _both(entry: Any, stand: Any, samples: int | None) -> tuple[str, str]:
    """What differs in results, and in gradients."""
    told = []
    for gradients in (False, True):
        try:
            differences = examine(entry, stand, samples, gradients)
        except Exception as error:
            differences = [repr(error)[:200]]
        told.append(differences[0] if differences else "")
    return told[0], told[1]


def outcomes(device: str, names: list[str], samples: int | None, processes: int, seconds: float) -> list[Outcome]:
    """What several processes found about entries; those that had no turn are left out."""
    context = multiprocessing.get_context("spawn")
    queue, until = context.Queue(), time.time() + seconds
    workers = [
        context.Process(target=_work, args=(device, names[number::processes], samples, until, queue))
        for number in range(processes)
    ]
    for each in workers:
        each.start()
    found: list[Outcome] = []
    going = len(workers)
    while going:
        try:
            outcome = queue.get(timeout=max(until - time.time(), 0) + 20)
        except Exception:  # a process was lost, or is in an entry that does not end
            break
        going -= outcome is None
        if outcome is not None:
            found.append(outcome)
    for each in workers:
        each.join(1)
        each.kill()
    return found


def main() -> int:
    """The command; 0 where all that differs is listed."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.on_device", description=__doc__)
    parser.add_argument("--device", choices=tuple(STANDS), default="cuda")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--samples", type=int, default=5, help="of each entry; 0: all")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("patterns", nargs="*")
    options = parser.parse_args()
    names = [
        each.name
        for each in entries()
        if not options.patterns or any(fnmatch.fnmatch(each.name, one) for one in options.patterns)
    ]
    began = time.time()
    found = outcomes(options.device, names, options.samples or None, options.processes, options.seconds)
    known, listed = known_gaps(STANDS[options.device]()), json.loads(LIST.read_text())
    surprises = 0
    for each in found:
        for what, difference in (("results", each.results), ("gradients", each.gradients)):
            if difference:
                surprises += each.name not in known
                print(f"{what} of {each.name}{' (listed)' if each.name in known else ''}: {difference}")
        if more := set(each.host) - set(listed.get(each.name, ())):
            surprises += 1
            print(f"{each.name} ran on the host: {', '.join(sorted(more))}")
    total, host = len(found), sum(bool(each.host) for each in found)
    print(f"results {sum(not each.results for each in found)} of {total} entries agree with the CPU")
    print(f"gradients {sum(not each.gradients for each in found)} of {total} entries agree with the CPU")
    print(f"{host} of {total} entries compute something on the host; the list has {len(listed)}")
    print(f"{len(names) - total} entries had no turn; {time.time() - began:.0f} s")
    return int(surprises > 0 or total < len(names))


if __name__ == "__main__":
    raise SystemExit(main())
