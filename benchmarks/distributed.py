"""Collectives and a data-parallel step on two processes: Flambeau against PyTorch's Gloo, groups in turns.

python benchmarks/distributed.py
python benchmarks/distributed.py --processes 4 --rounds 5
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SIZES = (4, 4_096, 262_144, 4_194_304, 33_554_432)
"""Bytes."""
LIBRARIES = ("flambeau", "torch")


def best(action: Callable[[], Any], dist: Any, seconds: float) -> float:
    """The quickest of many calls, all processes together, in microseconds."""
    action()
    times = []
    until = time.perf_counter() + seconds
    for count in range(10_000):
        dist.barrier()
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
        if count % 10 == 9 and _agree(dist, time.perf_counter() > until):
            break
    return min(times) * 1e6


def _agree(dist: Any, enough: bool) -> bool:
    library = importlib.import_module(dist.__name__.partition(".")[0])
    flag = library.tensor([float(enough)])
    dist.broadcast(flag, 0)
    return bool(flag.item())


def cases(library: Any, dist: Any, size: int) -> dict[str, Callable[[], Any]]:
    """What is measured."""
    found: dict[str, Callable[[], Any]] = {"barrier": dist.barrier}
    for nbytes in SIZES:
        x = library.ones(nbytes // 4)
        whole = library.zeros(nbytes // 4 * size)
        found[f"all_reduce {nbytes:,}"] = lambda x=x: dist.all_reduce(x, dist.ReduceOp.MAX)
        found[f"broadcast {nbytes:,}"] = lambda x=x: dist.broadcast(x, 0)
        found[f"all_gather {nbytes:,}"] = lambda x=x, whole=whole: dist.all_gather_into_tensor(whole, x)
    for name, width, depth in (("DDP step, 1 MB", 256, 4), ("DDP step, 34 MB", 1024, 8)):
        found[name] = _step(library, width, depth)
    return found


def _step(library: Any, width: int, depth: int) -> Callable[[], Any]:
    nn = library.nn
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers))
    optimizer = library.optim.SGD(model.parameters(), 0.01)
    x = library.randn(32, width)

    def step() -> None:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    return step


def work(name: str, rank: int, size: int, meeting: str, seconds: float) -> None:
    """One process of one library."""
    library = importlib.import_module(name)
    dist = importlib.import_module(f"{name}.distributed")
    importlib.import_module(f"{name}.nn.parallel")
    library.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{meeting}", timedelta(seconds=300), size, rank)
    library.manual_seed(0)
    found = {label: best(action, dist, seconds) for label, action in cases(library, dist, size).items()}
    if rank == 0:
        print(json.dumps(found))
    dist.destroy_process_group()


def measured(name: str, size: int, seconds: float) -> dict[str, float]:
    """What a group of processes of one library took."""
    with tempfile.TemporaryDirectory() as folder:
        common = [sys.executable, __file__, "--worker", name, "--processes", str(size), "--seconds", str(seconds)]
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        processes = [
            subprocess.Popen(
                [*common, "--rank", str(rank), "--meeting", f"{folder}/meeting"],
                stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            )
            for rank in range(size)
        ]
        try:
            output, _ = processes[0].communicate(timeout=600)
            result: dict[str, float] = json.loads(output)
        finally:
            for process in processes:
                process.kill()
                process.wait()
    return result


def main() -> int:
    """Measure groups in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each case and round")
    parser.add_argument("--worker", choices=LIBRARIES)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--meeting", default="")
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.rank, options.processes, options.meeting, options.seconds)
        return 0
    times: dict[str, dict[str, float]] = {name: {} for name in LIBRARIES}
    for _ in range(options.rounds):
        for name in LIBRARIES:
            for label, value in measured(name, options.processes, options.seconds).items():
                times[name][label] = min(value, times[name].get(label, float("inf")))
    print(f"{options.processes} processes, quickest of {options.rounds} rounds, microseconds")
    print(f"{'':28}{'Flambeau':>12}{'Gloo':>12}{'ratio':>8}")
    for label, value in times["flambeau"].items():
        other = times["torch"][label]
        print(f"{label:28}{value:12.1f}{other:12.1f}{value / other:8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
