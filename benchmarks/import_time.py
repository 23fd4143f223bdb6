"""How long `import flambeau` takes against `import torch`, in fresh processes that take turns; NumPy alone beside them.

Also which packages each import spends its time in, and whether Flambeau loads one that should wait for its first use.

    python benchmarks/import_time.py
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict

import _measure

TARGETS = ("flambeau", "torch", "numpy")
LOADED_AT_FIRST_USE = ("cupy", "llvmlite", "matplotlib", "mpi4py", "pandas", "PIL", "scipy", "torch", "triton")
HEAVY_MILLISECONDS = 3.0

# The clock starts after the interpreter has: only the import is timed. The checkout is searched last, as in `load`.
PROGRAM = """
import sys, time
sys.path.append({checkout!r})
start = time.perf_counter()
import {target}
seconds = time.perf_counter() - start
if {target}.__file__ is None:
    raise ImportError("{target} is a bare folder, not a package")
import json
print(json.dumps([seconds * 1e3, len(sys.modules), sorted({{name.partition(".")[0] for name in sys.modules}})]))
"""


def run_fresh(target: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """Import `target` in a new process."""
    program = PROGRAM.format(checkout=str(_measure.CHECKOUT), target=target)
    # Installed packages have their bytecode on disk; a checkout gets it at its first import, unless that is forbidden.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(
        [sys.executable, *flags, "-c", program],
        cwd=_measure.BENCHMARKS,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def measure(targets: list[str], rounds: int) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Milliseconds of each import, in turns, and the reason for each target that cannot be imported."""
    times: dict[str, list[float]] = {target: [] for target in targets}
    missing: dict[str, str] = {}
    for target in targets:  # one import each that is not counted: it fills the caches of files and bytecode
        process = run_fresh(target)
        if process.returncode != 0:
            missing[target] = (process.stderr.strip().splitlines() or [f"exit status {process.returncode}"])[-1]
    for _ in range(rounds):
        for target in targets:
            if target not in missing:
                times[target].append(json.loads(run_fresh(target).stdout)[0])
    return times, missing


def heavy_packages(target: str) -> dict[str, float]:
    """Milliseconds spent in each top-level package's own modules while `target` was imported, greatest first."""
    milliseconds: defaultdict[str, float] = defaultdict(float)
    for line in run_fresh(target, "-X", "importtime").stderr.splitlines():
        own, separator, name = line.removeprefix("import time:").partition("|")
        if separator and own.strip().isdigit():
            milliseconds[name.rpartition("|")[2].strip().partition(".")[0]] += int(own) / 1e3
    ordered = sorted(milliseconds.items(), key=lambda item: -item[1])
    return {package: spent for package, spent in ordered if spent >= HEAVY_MILLISECONDS}


def main() -> int:
    """Measure the chosen imports; 1 if Flambeau cannot be imported or loads a package that should wait."""
    parser = _measure.parser("Import time, Flambeau against PyTorch.", "only packages whose name matches")
    options = parser.parse_args()
    rounds = 3 if options.quick else 11
    targets = [target for target in TARGETS if options.only.search(target)]
    times, missing = measure(targets, rounds)
    medians = {target: statistics.median(taken) for target, taken in times.items() if taken}

    print(f"{'import':<10}{'median ms':>11}{'least ms':>11}{'modules':>9}")
    loaded: dict[str, list[str]] = {}
    for target in targets:
        if target in missing:
            print(f"{target:<10}missing ({missing[target]})")
            continue
        _, modules, loaded[target] = json.loads(run_fresh(target).stdout)
        print(f"{target:<10}{medians[target]:>11.1f}{min(times[target]):>11.1f}{modules:>9}")

    heavy: dict[str, dict[str, float]] = {target: heavy_packages(target) for target in loaded}
    for target, packages in heavy.items():
        listed = ", ".join(f"{package} {spent:.0f}" for package, spent in packages.items())
        print(f"{target} loads (own ms, while traced, of {HEAVY_MILLISECONDS:.0f} ms and more): {listed}")
    too_early = sorted(set(LOADED_AT_FIRST_USE) & set(loaded.get("flambeau", [])))
    if "flambeau" in loaded:
        print(f"packages that should wait for their first use but are loaded: {', '.join(too_early) or 'none'}")
    if {"flambeau", "torch"} <= medians.keys():
        print(f"ratio of flambeau to torch: {medians['flambeau'] / medians['torch']:.4f} (goal: below 0.1)")
    results = {"milliseconds": times, "missing": missing, "heavy": heavy, "too_early": too_early}
    _measure.write_json(options.json, results)
    return 1 if "flambeau" in missing or too_early else 0


if __name__ == "__main__":
    sys.exit(main())
