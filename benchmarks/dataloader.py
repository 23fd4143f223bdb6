"""Samples per second of a DataLoader, the start of its workers and their memory, Flambeau against PyTorch.

Both frameworks load the same data in one process and take turns, epoch by epoch, with workers that stay. PyTorch has no
worker threads: Flambeau's are compared with as many of PyTorch's worker processes. Memory is measured in processes that
have one framework only.

    python benchmarks/dataloader.py
    python benchmarks/dataloader.py --only 'images, 2'
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import _measure
import numpy as np

PROCESSES, THREADS = "processes", "threads"
WORKERS = ((0, PROCESSES), (2, PROCESSES), (4, PROCESSES), (2, THREADS), (4, THREADS))


@dataclass(frozen=True)
class Case:
    """A typical dataset: how it is made, the size of batches, and how many samples an epoch has."""

    make: Callable[[Any, int], Any]
    batch_size: int
    samples: int


def small_images(torch: Any, samples: int) -> Any:
    """Images of 3x32x32 and their labels, in memory: all work is collation and transfer."""
    numbers = np.arange(samples * 3 * 32 * 32, dtype=np.float32).reshape(samples, 3, 32, 32)
    return torch.utils.data.TensorDataset(torch.from_numpy(numbers), torch.arange(samples))


def python_work(torch: Any, samples: int) -> Any:
    """Lines of text that are parsed by Python code when they are asked for."""

    class Lines(torch.utils.data.Dataset):  # type: ignore[misc]
        def __init__(self) -> None:
            self.lines = [" ".join(str((row * 37 + column) % 1000) for column in range(256)) for row in range(samples)]

        def __len__(self) -> int:
            return len(self.lines)

        def __getitem__(self, index: int) -> Any:
            words = self.lines[index].split()
            values = [int(word) / 1000 for word in words]
            return {"values": torch.tensor(values), "length": len(words), "name": words[0]}

    return Lines()


def large_samples(torch: Any, samples: int) -> Any:
    """Arrays of a megabyte, each changed a little, as from a decoder."""

    class Pictures(torch.utils.data.Dataset):  # type: ignore[misc]
        def __init__(self) -> None:
            self.base = np.arange(3 * 296 * 296, dtype=np.float32).reshape(3, 296, 296)

        def __len__(self) -> int:
            return samples

        def __getitem__(self, index: int) -> Any:
            return torch.from_numpy(self.base + np.float32(index)), index

    return Pictures()


CASES = {
    "small images": Case(small_images, 64, 8192),
    "Python work": Case(python_work, 32, 4096),
    "large samples": Case(large_samples, 8, 256),
}


def make_loader(torch: Any, case: Case, samples: int, workers: int, kind: str) -> Any:
    """A loader whose workers stay for the next epoch."""
    options: dict[str, Any] = {"num_workers": workers, "persistent_workers": workers > 0}
    if kind == THREADS and torch.__name__ == "flambeau":
        options["worker_method"] = "thread"
    generator = torch.Generator().manual_seed(7)
    dataset = case.make(torch, samples)
    return torch.utils.data.DataLoader(dataset, case.batch_size, shuffle=True, generator=generator, **options)


def touch(batch: Any) -> None:
    """Look at each page of a batch, as whoever uses it would; with the same code for both frameworks."""
    for each in batch.values() if isinstance(batch, Mapping) else batch:
        if hasattr(each, "numpy"):
            each.numpy().reshape(-1).view(np.uint8)[::4096].sum()


def comparable(batch: Any) -> Any:
    """A batch as plain values."""
    return _measure.plain(list(batch.items()) if isinstance(batch, Mapping) else batch)


def epoch(loader: Any) -> float:
    """Seconds that one pass takes."""
    start = perf_counter()
    for batch in loader:
        touch(batch)
    return perf_counter() - start


def start_of_workers(loader: Any) -> tuple[float, Any]:
    """Seconds to the first batch of a loader that has no workers yet, and that batch, which is as plain values."""
    start = perf_counter()
    iterator = iter(loader)
    batch = next(iterator)
    return perf_counter() - start, comparable(batch)


def measure(case: Case, workers: int, kind: str, frameworks: Mapping[str, Any], samples: int, rounds: int) -> Any:
    """For each framework the seconds of its epochs and of its starts; None if the batches differ."""
    epochs: dict[str, list[float]] = {name: [] for name in frameworks}
    starts: dict[str, list[float]] = {name: [] for name in frameworks}
    first: dict[str, Any] = {}
    for _ in range(min(3, rounds)):
        for name, torch in frameworks.items():
            seconds, first[name] = start_of_workers(make_loader(torch, case, samples, workers, kind))
            starts[name].append(seconds)
    if not _measure.same(*first.values()):
        return None
    loaders = {name: make_loader(torch, case, samples, workers, kind) for name, torch in frameworks.items()}
    order = list(loaders)
    for name in order:
        epoch(loaders[name])  # starts the workers, and is not counted
    for _ in range(rounds):
        for name in order:
            epochs[name].append(epoch(loaders[name]))
        order.reverse()
    return epochs, starts


MEMORY_PROGRAM = """
import json, sys, warnings
sys.path[:0] = [{benchmarks!r}]
import _measure, dataloader
warnings.simplefilter("ignore")
torch = _measure.load({name!r})
case = dataloader.CASES[{case!r}]
loader = dataloader.make_loader(torch, case, {samples}, 2, dataloader.PROCESSES)
iterator = iter(loader)
for _ in range({batches}):
    dataloader.touch(next(iterator))
print(json.dumps([dataloader.memory_of(process.pid) for process in iterator._workers]))
"""


def memory_of(pid: int) -> tuple[float, float]:
    """Megabytes of a process that no other has, and its share of all that it has."""
    sizes: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]:
        name, number, _ = line.split()
        sizes[name] = int(number)
    return (sizes["Private_Clean:"] + sizes["Private_Dirty:"]) / 1024, sizes["Pss:"] / 1024


def worker_memory(name: str, case: str, samples: int) -> tuple[float, float]:
    """What one of two worker processes takes in the middle of an epoch: unique and proportional megabytes."""
    batches = samples // CASES[case].batch_size // 2
    program = MEMORY_PROGRAM.format(
        benchmarks=str(_measure.BENCHMARKS), name=name, case=case, samples=samples, batches=batches
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    unique, proportional = zip(*json.loads(process.stdout), strict=True)
    return statistics.mean(unique), statistics.mean(proportional)


def main() -> int:
    """Measure the chosen cases; 1 if the frameworks' batches differ in one of them."""
    parser = _measure.parser("DataLoader, Flambeau against PyTorch.", "only cases whose name matches")
    options = parser.parse_args()
    rounds, share = (3, 4) if options.quick else (9, 1)
    frameworks = {name: _measure.load(name) for name in _measure.FRAMEWORKS}
    warnings.simplefilter("ignore")  # of more workers than processors

    print(f"PyTorch {frameworks['torch'].__version__}; samples per second, and milliseconds to the first batch")
    print(f"{'case':<32}{'Flambeau':>10}{'PyTorch':>10}{'ratio':>8}{'start, ms':>12}{'PyTorch':>10}")
    rows: list[dict[str, Any]] = []
    failed = False
    for name, case in CASES.items():
        samples = case.samples // share
        for workers, kind in WORKERS:
            title = f"{name}, {workers} {kind if workers else 'workers'}"
            if not options.only.search(title):
                continue
            result = measure(case, workers, kind, frameworks, samples, rounds)
            if result is None:
                failed = True
                print(f"{title:<32} differs")
                continue
            epochs, starts = ({key: statistics.median(each) for key, each in part.items()} for part in result)
            rates = {key: samples / seconds for key, seconds in epochs.items()}
            ratio = rates["flambeau"] / rates["torch"]
            rows.append({"name": title, "samples_per_second": rates, "ratio": ratio, "start": starts})
            numbers = f"{rates['flambeau']:>10.0f}{rates['torch']:>10.0f}{ratio:>8.2f}"
            print(f"{title:<32}{numbers}{1e3 * starts['flambeau']:>12.0f}{1e3 * starts['torch']:>10.0f}", flush=True)
    if rows:
        ratios = {row["name"]: row["ratio"] for row in rows}
        worst = min(ratios, key=lambda name: ratios[name])
        print(f"geometric mean of {len(ratios)} ratios: {_measure.geometric_mean(ratios.values()):.3f}")
        print(f"worst ratio: {ratios[worst]:.3f} ({worst})")
        print("goal: at least 1.0")

    memory: dict[str, dict[str, tuple[float, float]]] = {}
    print(f"\n{'MB of one of two processes':<32}{'Flambeau':>10}{'PyTorch':>10}   unique, and its share of all (PSS)")
    for name, case in CASES.items():
        if options.only.search(name):
            samples = case.samples // share
            memory[name] = {key: worker_memory(key, name, samples) for key in frameworks}
            for index, what in enumerate(("unique", "share")):
                numbers = "".join(f"{memory[name][key][index]:>10.1f}" for key in frameworks)
                print(f"{f'{name}, {what}':<32}{numbers}", flush=True)
    _measure.write_json(options.json, {"cases": rows, "worker_megabytes": memory})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
