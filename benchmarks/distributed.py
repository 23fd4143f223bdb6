"""Collectives, and steps of models that all processes have or that are spread over them: Flambeau, through shared
memory and over sockets, PyTorch's Gloo and raw MPI.

python benchmarks/distributed.py
python benchmarks/distributed.py --processes 4 --rounds 5

Groups of processes run in turns, and of each process the quickest call counts; the slowest process is shown. MPI is
left out where mpi4py or mpiexec is missing.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SIZES = (4, 4_096, 262_144, 4_194_304, 33_554_432)
"""Bytes."""
COLUMNS = ("Flambeau", "sockets", "Gloo", "MPI")
_LIBRARIES = {"Flambeau": "flambeau", "sockets": "flambeau", "Gloo": "torch"}
Cases = dict[str, Callable[[], Any]]


class Libraries:
    """What is measured of a library with PyTorch's names."""

    def __init__(self, name: str, rank: int, size: int, meeting: str) -> None:
        self.library = importlib.import_module(name)
        self.dist = importlib.import_module(f"{name}.distributed")
        importlib.import_module(f"{name}.nn.parallel")
        importlib.import_module(f"{name}.distributed.device_mesh")
        self.library.set_num_threads(1)
        self.dist.init_process_group("gloo", f"file://{meeting}", timedelta(seconds=300), size, rank)
        self.library.manual_seed(0)
        self.rank, self.size = rank, size
        self.barrier = self.dist.barrier
        self.close = self.dist.destroy_process_group

    def agree(self, enough: bool) -> bool:
        """What rank 0 says."""
        flag = self.library.tensor([float(enough)])
        self.dist.broadcast(flag, 0)
        return bool(flag.item())

    def largest(self, value: float) -> float:
        """The largest of all processes."""
        tensor = self.library.tensor([value], dtype=self.library.float64)
        self.dist.all_reduce(tensor, self.dist.ReduceOp.MAX)
        return float(tensor.item())

    def cases(self, sizes: Sequence[int], steps: bool) -> Cases:
        """What is measured."""
        library, dist = self.library, self.dist
        found: Cases = {"barrier": dist.barrier}
        for nbytes in sizes:
            x = library.ones(nbytes // 4)
            whole = library.zeros(nbytes // 4 * self.size)
            found[f"all_reduce {nbytes:,}"] = lambda x=x: dist.all_reduce(x, dist.ReduceOp.MAX)
            found[f"broadcast {nbytes:,}"] = lambda x=x: dist.broadcast(x, 0)
            found[f"all_gather {nbytes:,}"] = lambda x=x, whole=whole: dist.all_gather_into_tensor(whole, x)
        if steps:
            for kind, wrapped in {"DDP": self._replicated, "FSDP": self._spread}.items():
                found[f"{kind} step, 1 MB"] = self._step(256, 4, wrapped)
                found[f"{kind} step, 34 MB"] = self._step(1024, 8, wrapped)
        return found

    def _replicated(self, model: Any) -> Any:
        return self.library.nn.parallel.DistributedDataParallel(model)

    def _spread(self, model: Any) -> Any:
        """Each layer is a unit."""
        fsdp = importlib.import_module(f"{self.library.__name__}.distributed.fsdp")
        mesh = self.dist.device_mesh.init_device_mesh("cpu", (self.size,))
        for layer in model[::2]:
            fsdp.fully_shard(layer, mesh=mesh)
        return fsdp.fully_shard(model, mesh=mesh)

    def _step(self, width: int, depth: int, wrapped: Callable[[Any], Any]) -> Callable[[], Any]:
        library, nn = self.library, self.library.nn
        layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
        model = wrapped(nn.Sequential(*layers))
        optimizer = library.optim.SGD(model.parameters(), 0.01)
        x = library.randn(32, width)

        def step() -> None:
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()

        return step


class RawMPI:
    """The same collectives of MPI itself, on NumPy's arrays."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self._mpi, self._world = MPI, MPI.COMM_WORLD
        self.rank, self.size = self._world.Get_rank(), self._world.Get_size()
        self.barrier = self._world.Barrier

    def close(self) -> None:
        """MPI ends with the process."""

    def agree(self, enough: bool) -> bool:
        """What rank 0 says."""
        return bool(self._world.bcast(enough, 0))

    def largest(self, value: float) -> float:
        """The largest of all processes."""
        return float(self._world.allreduce(value, self._mpi.MAX))

    def cases(self, sizes: Sequence[int], steps: bool) -> Cases:
        """What is measured."""
        import numpy as np

        mpi, world = self._mpi, self._world
        found: Cases = {"barrier": world.Barrier}
        for nbytes in sizes:
            x = np.ones(nbytes // 4, np.float32)
            whole = np.zeros(nbytes // 4 * self.size, np.float32)
            found[f"all_reduce {nbytes:,}"] = lambda x=x: world.Allreduce(mpi.IN_PLACE, x, mpi.MAX)
            found[f"broadcast {nbytes:,}"] = lambda x=x: world.Bcast(x, 0)
            found[f"all_gather {nbytes:,}"] = lambda x=x, whole=whole: world.Allgather(x, whole)
        return found


def best(action: Callable[[], Any], group: Any, seconds: float, clock: Callable[[], float]) -> float:
    """The quickest of many calls, all processes together, in microseconds."""
    action()
    times = []
    until = time.perf_counter() + seconds
    for count in range(10_000):
        group.barrier()
        start = clock()
        action()
        times.append(clock() - start)
        if count % 10 == 9 and group.agree(time.perf_counter() > until):
            break
    return float(group.largest(min(times) * 1e6))


def work(options: argparse.Namespace) -> None:
    """One process of one group."""
    if options.worker == "MPI":
        group: Any = RawMPI()
    else:
        group = Libraries(_LIBRARIES[options.worker], options.rank, options.processes, options.meeting)
    cases = group.cases(options.sizes, options.steps)
    clock = time.process_time if options.cpu else time.perf_counter
    found = {label: best(action, group, options.seconds, clock) for label, action in cases.items()}
    if group.rank == 0:
        print(json.dumps(found))
    group.close()


def mpiexec() -> str | None:
    """The program that starts processes of MPI, if it can be used."""
    beside = Path(sys.executable).parent / "mpiexec"
    if importlib.util.find_spec("mpi4py") is None:
        return None
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def measured(
    column: str, size: int, seconds: float, sizes: Sequence[int] = SIZES, steps: bool = True, cpu: bool = False
) -> dict[str, float]:
    """What a group of processes took, in microseconds: by the clock, or of processors."""
    with tempfile.TemporaryDirectory() as folder:
        common = [sys.executable, __file__, "--worker", column, "--processes", str(size), "--seconds", str(seconds)]
        common += [
            "--meeting",
            f"{folder}/meeting",
            "--sizes",
            *map(str, sizes),
            *(["--steps"] if steps else []),
            *(["--cpu"] if cpu else []),
        ]
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        if column == "sockets":
            environment["FLAMBEAU_SHARED_MEMORY"] = "0"
        if column == "MPI":
            allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            oversubscribed = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_btl": "self,sm"}
            command = [str(mpiexec()), "-n", str(size), *common]
            output = subprocess.run(
                command, env={**environment, **allowed, **oversubscribed}, capture_output=True, timeout=600, check=True
            ).stdout
            result: dict[str, float] = json.loads(output)
            return result
        processes = [
            subprocess.Popen(
                [*common, "--rank", str(rank)],
                stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                env=environment,
            )
            for rank in range(size)
        ]
        try:
            output, _ = processes[0].communicate(timeout=600)
            result = json.loads(output)
        finally:
            for process in processes:
                process.kill()
                process.wait()
    return result


def main() -> int:
    """Measure groups in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each case and round")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="bytes")
    parser.add_argument("--columns", nargs="*", default=COLUMNS, choices=COLUMNS)
    for hidden, settings in {
        "--worker": {"choices": COLUMNS}, "--rank": {"type": int}, "--meeting": {}, "--steps": {"action": "store_true"},
        "--cpu": {"action": "store_true"},
    }.items():  # fmt: skip
        parser.add_argument(hidden, help=argparse.SUPPRESS, **settings)
    options = parser.parse_args()
    if options.worker:
        work(options)
        return 0
    columns = [name for name in options.columns if name != "MPI" or mpiexec() is not None]
    times: dict[str, dict[str, float]] = {name: {} for name in columns}
    for _ in range(options.rounds):
        for name in columns:
            for label, value in measured(name, options.processes, options.seconds, options.sizes).items():
                times[name][label] = min(value, times[name].get(label, float("inf")))
    print(f"{options.processes} processes, quickest of {options.rounds} rounds, microseconds")
    print(f"{'':28}" + "".join(f"{name:>12}" for name in columns) + f"{'to Gloo':>9}")
    for label, value in times[columns[0]].items():
        cells = "".join(f"{times[name][label]:12.1f}" if label in times[name] else f"{'':12}" for name in columns)
        ratio = f"{value / times['Gloo'][label]:9.2f}" if "Gloo" in columns else ""
        print(f"{label:28}{cells}{ratio}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
