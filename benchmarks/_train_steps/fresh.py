"""One workload in one framework in a process of its own: how much memory its steps take, how long its first step takes.

python -m _train_steps.fresh torch 'MLP, batch 64' 2 0   # in the folder of the benchmarks; prints JSON
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import _measure

from .workloads import WORKLOADS

STEPS = 3
SLOW_SECONDS = 4.0  # a step that takes longer is not repeated
CACHE_VARIABLE = "FLAMBEAU_CACHE_DIR"


@dataclass(frozen=True)
class Fresh:
    """Milliseconds of the first step, and megabytes by which the steps raised the peak of resident memory."""

    milliseconds: float
    megabytes: float


BYTECODE = tempfile.TemporaryDirectory(prefix="bytecode")
"""Where Python keeps compiled modules: as after any installation, they are there before a program starts."""


def run_fresh(framework: str, workload: str, threads: int, cache: Path, loaded: bool = False) -> Fresh:
    """Start the process; raise RuntimeError with the last line of its errors if it fails.

    `loaded`: the framework's libraries are in memory before the first step, as PyTorch's are after its import.
    """
    return Fresh(*printed_by("_train_steps.fresh", framework, workload, threads, int(loaded), cache=cache))


def printed_by(module: str, *arguments: object, cache: Path, **variables: str) -> Any:
    """What a module prints as JSON in its last line, run in a process of its own; kernels are kept in `cache`.

    RuntimeError with the last line of its errors if it fails. `variables` are set in its environment.
    """
    environment = {**os.environ, **variables, CACHE_VARIABLE: str(cache), "PYTHONPYCACHEPREFIX": BYTECODE.name}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=_measure.BENCHMARKS,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode != 0:
        raise RuntimeError((process.stderr.strip().splitlines() or [f"exit status {process.returncode}"])[-1])
    return json.loads(process.stdout.splitlines()[-1])


def status_megabytes(field: str) -> float:
    """A field of /proc/self/status that is in kilobytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(field + ":")) / 1024


def start_of_peak() -> float | None:
    """Let the peak of resident memory begin anew, and return the memory that it starts from; None where none can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        return status_megabytes("VmRSS")
    except OSError:
        return None


def peak_megabytes() -> float:
    """The greatest resident memory of this process, as getrusage counts it: it never goes down."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def main() -> None:
    """Build, then run the first step and, if that was not slow, some more."""
    name, workload, threads = sys.argv[1], WORKLOADS[sys.argv[2]], int(sys.argv[3])
    framework = _measure.load(name, threads)
    framework.manual_seed(0)
    step = workload.build(framework)
    if sys.argv[4] == "1":
        framework.ones(5000).exp()
    start = start_of_peak()
    before = peak_megabytes() if start is None else start
    begin = perf_counter()
    step()
    seconds = perf_counter() - begin
    for _ in range(STEPS - 1 if seconds < SLOW_SECONDS else 0):
        step()
    after = peak_megabytes() if start is None else status_megabytes("VmHWM")
    print(json.dumps([seconds * 1e3, after - before]))


if __name__ == "__main__":
    main()
