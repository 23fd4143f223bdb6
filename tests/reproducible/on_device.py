"""`python -m tests.reproducible.on_device FILE`: which entries of the operator database keep the levels on a GPU.

At "run" each entry runs twice, with its first samples and with larger ones; at "batch" samples run alone and among 3
and 400. Results and gradients are compared bit by bit. Several processes share the entries, and stop after some
minutes; `FILE` says in JSON what they found. Without a GPU the simulated device runs.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import flambeau
from tests.support.simulated_cuda import install_simulated_device

from .operators import CHECKS, Place, chosen

LEVELS = ("run", "batch")


def survey(names: str, part: int, parts: int, seconds: float) -> dict[str, dict[str, str]]:
    """For each level what became of each entry of a part: "holds", "not run", "raises: ...", "differs: ..."."""
    if not flambeau.cuda.is_available():
        install_simulated_device()
    Place.device = "cuda"
    flambeau.backends.cudnn.allow_tf32 = False
    found: dict[str, dict[str, str]] = {level: {} for level in LEVELS}
    end = time.monotonic() + seconds
    for entry in chosen()[part::parts]:
        if not fnmatch.fnmatch(entry.name, names):
            continue
        for level in LEVELS:
            if time.monotonic() > end:
                return found
            Place.refused = None
            try:
                what = CHECKS[level](entry)
            except Exception as error:
                what = f"{type(error).__name__}: {error}"
            if what:
                found[level][entry.name] = f"differs: {what}"
            elif Place.refused is not None:
                found[level][entry.name] = f"raises: {Place.refused}"
            else:
                found[level][entry.name] = "not run" if what is None else "holds"
    return found


def summary(found: dict[str, dict[str, str]], total: int) -> dict[str, Any]:
    """How many entries there are of each kind, and the names of all that do not hold."""
    result: dict[str, Any] = {}
    for level, outcomes in found.items():
        kinds = {name: text.partition(":")[0] for name, text in outcomes.items()}
        counts = {kind: sum(each == kind for each in kinds.values()) for kind in sorted({*kinds.values()})}
        others = {name: text for name, text in sorted(outcomes.items()) if kinds[name] in ("raises", "differs")}
        absent = sorted(name for name, kind in kinds.items() if kind == "not run")
        result[level] = {
            "entries": total,
            **counts,
            "not surveyed": total - len(outcomes),
            "why": others,
            "no batch": absent,
        }
    return result


def main() -> None:
    """Survey in several processes, and write what they found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="*", help="a pattern of names of entries")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=200.0)
    parser.add_argument("--part", type=int, help="survey this part alone")
    options = parser.parse_args()
    if options.part is not None:
        found = survey(options.only, options.part, options.jobs, options.seconds)
        options.file.write_text(json.dumps(found), encoding="utf-8")
        return
    files = [options.file.with_name(f"{options.file.name}.{part}") for part in range(options.jobs)]
    common = ["--only", options.only, "--jobs", str(options.jobs), "--seconds", str(options.seconds)]
    command = [sys.executable, "-m", "tests.reproducible.on_device"]
    running = [subprocess.Popen([*command, str(file), *common, "--part", str(part)]) for part, file in enumerate(files)]
    for each in running:
        each.wait()
    total: dict[str, dict[str, str]] = {level: {} for level in LEVELS}
    for file in files:
        if file.exists():  # a process that was killed has written nothing
            for level, outcomes in json.loads(file.read_text(encoding="utf-8")).items():
                total[level].update(outcomes)
            file.unlink()
    count = sum(fnmatch.fnmatch(entry.name, options.only) for entry in chosen())
    table = summary(total, count)
    options.file.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    for level, row in table.items():
        print(f"{level}: " + ", ".join(f"{value} {kind}" for kind, value in row.items() if type(value) is int))
        for name, why in row["why"].items():
            if why.startswith("differs"):
                print(f"  {name}: {why}")


if __name__ == "__main__":
    main()
