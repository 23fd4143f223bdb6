"""Runs of the programs under seeds: `python -m tests.cuda.streams.runs --seeds 10000 --file progress.json`.

Seed n runs the program n modulo their number. A second call with the same file continues.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.out_of_order_cuda import install_out_of_order_devices
from tests.support.stream_schedule import SCHEDULE

DEVICES = int(os.environ.get("FLAMBEAU_SIMULATED_DEVICES", "2"))
install_out_of_order_devices(DEVICES)

import flambeau as torch  # noqa: E402
from tests.cuda.streams import graphs  # noqa: E402, F401  (completes the list)
from tests.cuda.streams.programs import PROGRAMS, Program  # noqa: E402
from tests.cuda.streams.several import SEVERAL  # noqa: E402

ALL: dict[str, Program] = {**PROGRAMS, **(SEVERAL if DEVICES > 1 else {})}
IN_ORDER = -1
"""The seed for which every piece of work is done at once."""


def run(program: Program, seed: int) -> tuple[list[Any], list[str]]:
    """The results of a program under a seed, as lists of numbers, and its races."""
    SCHEDULE.restart(seed)
    torch.manual_seed(0)
    results = [each.tolist() for each in program()]
    gc.collect(0)
    SCHEDULE.finish()
    return results, list(SCHEDULE.races)


_expected: dict[str, Any] = {}


def failure(name: str, seed: int) -> str | None:
    """What is wrong with a program under a seed: a race, or other results than in order."""
    try:
        if name not in _expected:
            _expected[name], races = run(ALL[name], IN_ORDER)
            if races:
                return f"{name}, in order: {races[0]}"
        found, races = run(ALL[name], seed)
    except Exception as error:
        return f"{name}, seed {seed}: {type(error).__name__}: {error}"
    if races:
        return f"{name}, seed {seed}: {races[0]}"
    return None if found == _expected[name] else f"{name}, seed {seed}: other results: {found} != {_expected[name]}"


def failures(seeds: Iterable[int]) -> list[str]:
    """What is wrong under any of some seeds, each with its program."""
    names = sorted(ALL)
    return [found for seed in seeds if (found := failure(names[seed % len(names)], seed)) is not None]


def main() -> None:
    """Run seeds, and write down how far it came."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many seconds")
    parser.add_argument("--file", type=Path, help="where progress is kept")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    state = {"next": options.first, "failures": []}
    if options.file is not None and options.file.exists():
        state = json.loads(options.file.read_text())
    begin = time.monotonic()
    while state["next"] < options.first + options.seeds and time.monotonic() - begin < options.seconds:
        chunk = range(state["next"], min(state["next"] + 50, options.first + options.seeds))
        state["failures"] += failures(chunk)
        state["next"] = chunk.stop
        if options.file is not None:
            options.file.write_text(json.dumps(state))
    for each in state["failures"][:20]:
        print(each[:600])
    print(f"{state['next'] - options.first} seeds, {len(ALL)} programs, {DEVICES} devices, "
          f"{len(state['failures'])} failures, {time.monotonic() - begin:.0f} s")  # fmt: skip


if __name__ == "__main__":
    main()
