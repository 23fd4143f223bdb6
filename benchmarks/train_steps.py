"""Training steps and the kernels under them, Flambeau against PyTorch: time, memory, first call, on a busy machine.

python benchmarks/train_steps.py
python benchmarks/train_steps.py --only MLP convnet --quick
python benchmarks/train_steps.py --all --json performance.json   # what tools/performance_page.py reads
python benchmarks/train_steps.py --device cuda                   # other workloads, on a GPU, in one process
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import _measure
from _measure import Timing
from _train_steps.fresh import SLOW_SECONDS, Fresh, run_fresh
from _train_steps.worker import Worker
from _train_steps.workloads import BUSY_WORKLOADS, WORKLOADS, Workload

BURST_SECONDS = 0.1

Row = dict[str, Any]


class NotMeasured(Exception):
    """A workload that has no ratio, and why."""


# ----- time -----------------------------------------------------------------------------------------------------------


def compare(ours: Path, theirs: Path, tolerance: float) -> None:
    """Raise NotMeasured unless both results agree, measured by the greatest element."""
    import numpy as np  # late: this process has no use for the threads of its BLAS

    with np.load(ours) as left, np.load(theirs) as right:
        for name in right.files:
            difference = abs(left[name] - right[name]).max() / abs(right[name]).max()
            if not difference <= tolerance:  # so written, NaN differs
                raise NotMeasured(f"differs (by {difference:.1e}, where {tolerance:.0e} is allowed)")


@contextmanager
def workers(workload: Workload, threads: int) -> Iterator[tuple[dict[str, Worker], dict[str, float]]]:
    """A process for each framework, after they were found to agree, and the seconds that their last steps took."""
    started: dict[str, Worker] = {}
    taken: dict[str, float] = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name in _measure.FRAMEWORKS:
                started[name] = Worker(name, workload.name, threads)
            results = {name: Path(folder, f"{name}.npz") for name in started}
            for _ in range(2):  # a second loss is right only if the first step's gradients were
                for name, worker in started.items():
                    taken[name] = worker.step(results[name])
                compare(results["flambeau"], results["torch"], workload.tolerance)
                if max(taken.values()) > SLOW_SECONDS:
                    break
        yield started, taken
    except (RuntimeError, BrokenPipeError) as error:
        raise NotMeasured(f"failed ({error})") from error
    finally:
        for worker in started.values():
            worker.close()


def timings(workload: Workload, threads: int, quick: bool) -> dict[str, Timing]:
    """Microseconds of a step, in bursts that take turns."""
    with workers(workload, threads) as (started, taken):
        if max(taken.values()) > SLOW_SECONDS:
            return {name: Timing(seconds * 1e6, seconds * 1e6) for name, seconds in taken.items()}
        budget, least, most = (1.5, 3, 10) if quick else (8.0, 5, 40)
        a_round = sum(max(seconds, BURST_SECONDS) for seconds in taken.values())
        rounds = min(max(round(budget / a_round), least), most)
        measured = _measure.alternate_bursts([each.burst for each in started.values()], rounds, BURST_SECONDS)
        return dict(zip(started, measured, strict=True))


def time_row(workload: Workload, threads: int, quick: bool) -> Row:
    """Milliseconds of both, and their ratio; of the quickest bursts too, for a machine that others use."""
    times = timings(workload, threads, quick)
    ours, theirs = times["flambeau"], times["torch"]
    return {
        "flambeau_ms": ours.median / 1e3,
        "pytorch_ms": theirs.median / 1e3,
        "ratio": ours.median / theirs.median,
        "flambeau_best_ms": ours.best / 1e3,
        "pytorch_best_ms": theirs.best / 1e3,
        "best_ratio": ours.best / theirs.best,
    }


# ----- memory and first calls: processes of their own -----------------------------------------------------------------


def fresh(framework: str, workload: Workload, threads: int, cache: Path, loaded: bool = False) -> Fresh:
    """`run_fresh`, whose failure becomes the row's status."""
    try:
        return run_fresh(framework, workload.name, threads, cache, loaded)
    except RuntimeError as error:
        raise NotMeasured(f"failed in {_measure.FRAMEWORKS[framework]} ({error})") from error


def memory_row(workload: Workload, threads: int) -> Row:
    """Megabytes by which the first steps raise the peak of resident memory, beyond the libraries themselves."""
    with tempfile.TemporaryDirectory() as cache:
        ours, theirs = (fresh(name, workload, threads, Path(cache), True).megabytes for name in _measure.FRAMEWORKS)
    return {"flambeau_mb": ours, "pytorch_mb": theirs, "ratio": ours / theirs}


def first_row(workload: Workload, threads: int, quick: bool) -> Row:
    """Milliseconds of the first step of a process: with an empty cache of generated code, with a filled one, PyTorch's.

    The model is built before the clock starts.
    """
    taken: dict[str, list[float]] = {"cold": [], "warm": [], "pytorch": []}
    for _ in range(1 if quick else 3):
        with tempfile.TemporaryDirectory() as cache:
            for kind, framework in (("cold", "flambeau"), ("warm", "flambeau"), ("pytorch", "torch")):
                taken[kind].append(fresh(framework, workload, threads, Path(cache)).milliseconds)
        if max(max(times) for times in taken.values()) > SLOW_SECONDS * 1e3:
            break
    cold, warm, theirs = (statistics.median(times) for times in taken.values())
    return {"cold_ms": cold, "warm_ms": warm, "pytorch_ms": theirs, "ratio": cold / theirs, "warm_ratio": warm / theirs}


# ----- a busy machine -------------------------------------------------------------------------------------------------


@contextmanager
def competitor() -> Iterator[Callable[[bool], None]]:
    """A process that only spins, and the switch that lets it run or halts it."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield lambda running: process.send_signal(signal.SIGCONT if running else signal.SIGSTOP)
    finally:
        process.kill()
        process.wait()


def busy_row(workload: Workload, threads: int, quick: bool) -> Row:
    """By what factor each framework's step is slower beside a process that spins on one core."""
    taken: dict[tuple[str, bool], list[float]] = {
        (name, busy): [] for name in _measure.FRAMEWORKS for busy in (False, True)
    }
    with workers(workload, threads) as (started, _), competitor() as run_competitor:
        for _ in range(3 if quick else 9):
            for busy in (False, True):
                run_competitor(busy)
                measured = _measure.alternate_bursts([each.burst for each in started.values()], 3, 0.1)
                for name, timing in zip(started, measured, strict=True):
                    taken[name, busy].append(timing.median / 1e3)
    medians = {key: statistics.median(times) for key, times in taken.items()}
    row: Row = {}
    for name, prefix in (("flambeau", "flambeau"), ("torch", "pytorch")):
        row[f"{prefix}_idle_ms"], row[f"{prefix}_busy_ms"] = medians[name, False], medians[name, True]
        row[f"{prefix}_slowdown"] = medians[name, True] / medians[name, False]
    row["ratio"] = row["flambeau_busy_ms"] / row["pytorch_busy_ms"]
    return row


# ----- tables and options ---------------------------------------------------------------------------------------------

COLUMNS: dict[str, tuple[tuple[str, str], ...]] = {
    "time": (("flambeau_ms", "Flambeau ms"), ("pytorch_ms", "PyTorch ms")),
    "memory": (("flambeau_mb", "Flambeau MB"), ("pytorch_mb", "PyTorch MB")),
    "first": (("cold_ms", "cold ms"), ("warm_ms", "warm ms"), ("pytorch_ms", "PyTorch ms")),
    "busy": (("flambeau_slowdown", "Flambeau x"), ("pytorch_slowdown", "PyTorch x")),
}
TITLES = {
    "time": "one step",
    "memory": "peak memory of the first steps",
    "first": "the first step of a process",
    "busy": "slowdown beside a busy process; ratio of the busy times",
}


def table(
    mode: str, chosen: list[Workload], row_of: Callable[[Workload], Row], rows: list[Row], save: Callable[[], None]
) -> None:
    """Measure, print and save line by line, so that a run that is interrupted leaves its rows; then the summary."""
    print(f"\n{TITLES[mode]}")
    print(f"{'workload':<32}" + "".join(f"{title:>13}" for _, title in COLUMNS[mode]) + f"{'ratio':>9}", flush=True)
    for number, workload in enumerate(chosen, 1):
        print(f"{mode} {number}/{len(chosen)}: {workload.name}", file=sys.stderr, flush=True)
        try:
            row = {"name": workload.name, "status": "measured", **row_of(workload)}
            numbers = "".join(f"{row[key]:>13.3f}" for key, _ in COLUMNS[mode])
            print(f"{workload.name:<32}{numbers}{row['ratio']:>9.3f}", flush=True)
        except NotMeasured as reason:
            row = {"name": workload.name, "status": str(reason), "ratio": None}
            print(f"{workload.name:<32}{str(reason).splitlines()[0]:.120}", flush=True)
        rows.append(row)
        save()
    ratios = {row["name"]: row["ratio"] for row in rows if row["ratio"] is not None}
    _measure.print_summary(ratios, goal="none above 1.0")


def machine() -> dict[str, object]:
    """What the numbers depend on."""
    processor = platform.processor() or platform.machine()
    try:
        listed = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout
        processor = dict(re.findall(r"^(.*?):\s*(.*)$", listed, re.MULTILINE)).get("Model name", processor)
    except (OSError, subprocess.CalledProcessError):
        pass  # not Linux
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": processor,
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "load": os.getloadavg()[0],  # processes that ran or waited for a core, in the last minute before
    }


def version(name: str) -> str:
    """Of an installed package, without loading it."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def options_of_the_command() -> argparse.Namespace:
    """The options of every benchmark, where --only takes several names, and this one's."""
    parser = argparse.ArgumentParser(description="Training steps, Flambeau against PyTorch.")
    parser.add_argument("--only", metavar="REGEX", nargs="+", type=re.compile, help="only workloads that one matches")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, nothing that may take minutes")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the numbers to FILE as well")
    parser.add_argument("--list", action="store_true", help="print the names of the workloads")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where the steps run (cpu)")
    parser.add_argument("--threads", type=int, default=2, help="of both frameworks (2)")
    parser.add_argument("--memory", action="store_true", help="peak memory of the training steps, instead of time")
    parser.add_argument("--first", action="store_true", help="time of the first step of a process")
    parser.add_argument("--busy", action="store_true", help="slowdown beside a process that spins")
    parser.add_argument("--all", action="store_true", help="time, memory, first step and slowdown")
    return parser.parse_args()


def on_cuda(options: argparse.Namespace) -> int:
    """The time of the steps on a GPU."""
    from _train_steps import cuda  # late: it loads both frameworks into this process

    _measure.load("torch", 4), _measure.load("flambeau", 4)
    chosen = [each for each in cuda.WORKLOADS if not options.only or any(one.search(each.name) for one in options.only)]
    if options.list:
        print("\n".join(each.name for each in chosen))
        return 0
    rows: list[Row] = []
    cuda.table(chosen, options.quick, rows, lambda: _measure.write_json(options.json, {"cuda": rows}))
    return int(any(row["ratio"] is None for row in rows))


def main() -> int:
    """Measure what was asked for; 1 if Flambeau could not do a workload or got another result."""
    options = options_of_the_command()
    if options.device == "cuda":
        return on_cuda(options)
    chosen = [
        workload
        for name, workload in WORKLOADS.items()
        if (not options.only or any(regex.search(name) for regex in options.only))
        and not (options.quick and workload.heavy)
    ]
    if options.list:
        print("\n".join(workload.name for workload in chosen))
        return 0
    threads, quick = options.threads, options.quick
    asked = {mode for mode in ("memory", "first", "busy") if options.all or getattr(options, mode)}
    versions = {name: version(name) for name in _measure.FRAMEWORKS}
    about = {"machine": machine(), "versions": versions, "threads": threads, "quick": quick}
    results: dict[str, list[Row]] = {}

    def fill(mode: str, workloads: list[Workload], row_of: Callable[[Workload], Row]) -> None:
        results[mode] = []
        table(mode, workloads, row_of, results[mode], lambda: _measure.write_json(options.json, {**about, **results}))

    if "memory" in asked:
        trained = [workload for workload in chosen if workload.trains]
        fill("memory", trained, lambda workload: memory_row(workload, threads))
    if "first" in asked:
        fill("first", chosen, lambda workload: first_row(workload, threads, quick))
    if options.all or not asked:
        fill("time", chosen, lambda workload: time_row(workload, threads, quick))
    if "busy" in asked:
        alone = [workload for workload in chosen if workload.name in BUSY_WORKLOADS]
        fill("busy", alone, lambda workload: busy_row(workload, threads, quick))
    return 1 if any(row["ratio"] is None for rows in results.values() for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
