"""Time and memory of building, backward and release against the size of the graph, from 10 to 1,000,000 nodes.

Each measurement runs in a fresh process, so that one graph's memory is not served from what another left behind; the
frameworks take turns. Python's cycle collector stays on, as it is for users.

    python benchmarks/graph_scale.py --plot graph_scale.png
    python benchmarks/graph_scale.py --only '^deep' --quick
"""

from __future__ import annotations

import gc
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import _measure

SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES = SIZES[:-1]
LEAST_SIZE_FOR_SLOPE = 1_000  # below it, the fixed cost of one backward weighs in
GREATEST_LINEAR_SLOPE = 1.15  # caches alone make large graphs up to twice as slow per node over three decades
LEAST_SIZE_FOR_MEMORY = 10_000  # smaller graphs drown in the allocators' page-sized steps
NODES_PER_PROCESS = 100_000  # small graphs are repeated until about so many nodes were made
TIMEOUT_SECONDS = 600.0
PAGE = os.sysconf("SC_PAGE_SIZE")
PHASES = ("build", "backward", "release")

Build = Callable[[Any, Any, int], Any]


def deep(torch: Any, x: Any, size: int) -> Any:
    """A chain of `size` products."""
    one = torch.tensor([1.0])
    y = x
    for _ in range(size):
        y = y * one
    return y.sum()


def wide(torch: Any, x: Any, size: int) -> Any:
    """One leaf in `size` products side by side, joined by one node."""
    one = torch.tensor([1.0])
    return torch.stack([x * one for _ in range(size)]).sum()


SHAPES: dict[str, Build] = {"deep": deep, "wide": wide}


@dataclass(frozen=True)
class Measurement:
    """One framework, one shape, one size. Times in nanoseconds for the whole graph, memory in bytes above the start."""

    build: float
    backward: float
    release: float
    graph_bytes: float  # resident when the graph stands
    peak_bytes: float  # greatest until the end of backward

    @property
    def total(self) -> float:
        """Building and backward and release."""
        return self.build + self.backward + self.release


def resident_bytes() -> int:
    """What this process has in memory now."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE


def peak_resident_bytes() -> int:
    """The most that this process has had in memory since `reset_peak`."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def reset_peak() -> None:
    """Let the peak start from here. Where the system forbids it, the peak of importing stays in."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def one_pass(torch: Any, shape: str, size: int) -> list[int]:
    """Build, run backward and drop one graph: the nanoseconds of each."""
    x = torch.tensor([1.0], requires_grad=True)
    times = [perf_counter_ns()]
    loss = SHAPES[shape](torch, x, size)
    times.append(perf_counter_ns())
    loss.backward()
    times.append(perf_counter_ns())
    del loss
    times.append(perf_counter_ns())
    gradient, expected = x.grad.item(), 1.0 if shape == "deep" else float(size)
    if gradient != expected:
        raise RuntimeError(f"{shape} graph of {size} nodes: the gradient is {gradient}, not {expected}")
    return [after - before for before, after in itertools.pairwise(times)]


def measure_here(framework: str, shape: str, size: int) -> None:
    """Measure in this process and print the result as JSON. This is what the fresh processes run."""
    torch = _measure.load(framework)
    for _ in range(20):
        one_pass(torch, shape, 10)  # what the first calls set up is not part of the graph
    gc.collect()

    reset_peak()
    before = resident_bytes()
    loss = SHAPES[shape](torch, torch.tensor([1.0], requires_grad=True), size)
    graph_bytes = resident_bytes() - before
    loss.backward()
    peak_bytes = peak_resident_bytes() - before
    del loss

    passes = min(1_000, max(1, NODES_PER_PROCESS // size))
    times = zip(*(one_pass(torch, shape, size) for _ in range(passes)), strict=True)
    build, backward, release = map(statistics.median, times)
    print(json.dumps(asdict(Measurement(build, backward, release, graph_bytes, peak_bytes))))


def measure_afresh(framework: str, shape: str, size: int) -> Measurement | str:
    """Measure in a new process. What went wrong there comes back as text: a crash or a hang must not end the table."""
    program = f"import graph_scale; graph_scale.measure_here({framework!r}, {shape!r}, {size})"
    try:
        process = subprocess.run(
            [sys.executable, "-c", program],
            cwd=_measure.BENCHMARKS,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"failed (no result after {TIMEOUT_SECONDS:.0f} s)"
    if process.returncode == 0:
        return Measurement(**json.loads(process.stdout))
    last_line = (process.stderr.strip().splitlines() or [f"exit status {process.returncode}"])[-1]
    lacking = last_line.startswith(("AttributeError", "NotImplementedError"))
    return f"{'missing' if lacking else 'failed'} ({last_line})"


def middle(measurements: Sequence[Measurement]) -> Measurement:
    """The median of each number."""
    columns = zip(*(asdict(one).values() for one in measurements), strict=True)
    return Measurement(*map(statistics.median, columns))


def measure(shape: str, size: int, rounds: int) -> dict[str, Measurement | str]:
    """Both frameworks in turns; a framework that failed once is not tried again."""
    results: dict[str, list[Measurement]] = {name: [] for name in _measure.FRAMEWORKS}
    failures: dict[str, str] = {}
    for _ in range(rounds):
        for name in _measure.FRAMEWORKS:
            outcome = failures.get(name) or measure_afresh(name, shape, size)
            if isinstance(outcome, str):
                failures[name] = outcome
            else:
                results[name].append(outcome)
    return {name: failures.get(name) or middle(results[name]) for name in _measure.FRAMEWORKS}


def print_header(shape: str) -> None:
    """The titles of one shape's table."""
    print(f"\n{shape}: nanoseconds per node; peak memory in MB above the process's start")
    columns = "".join(f"{phase:>10}" for phase in (*PHASES, "MB"))
    print(f"{'nodes':>9}  {'framework':<10}{columns}{'time ratio':>12}{'memory ratio':>14}")


def print_rows(size: int, outcomes: Mapping[str, Measurement | str]) -> None:
    """Both frameworks' lines; the ratios stand on Flambeau's."""
    flambeau, pytorch = outcomes["flambeau"], outcomes["torch"]
    for name, outcome in outcomes.items():
        start = f"{size:>9,}  {_measure.FRAMEWORKS[name]:<10}"
        if isinstance(outcome, str):
            print(start + outcome, flush=True)
            continue
        phases = "".join(f"{getattr(outcome, phase) / size:>10.0f}" for phase in PHASES)
        line = f"{start}{phases}{outcome.peak_bytes / 1e6:>10.1f}"
        if name == "flambeau" and isinstance(flambeau, Measurement) and isinstance(pytorch, Measurement):
            line += f"{flambeau.total / pytorch.total:>12.3f}"
            if size >= LEAST_SIZE_FOR_MEMORY:
                line += f"{flambeau.peak_bytes / pytorch.peak_bytes:>14.3f}"
        print(line, flush=True)


def slope(points: Sequence[tuple[int, float]]) -> float:
    """The exponent p of the best fit time = constant * size ** p: 1 for linear, 2 for quadratic."""
    logs = [(math.log(size), math.log(time)) for size, time in points]
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


def print_linearity(shape: str, table: Mapping[int, Mapping[str, Measurement | str]]) -> None:
    """One line for each framework and phase: is the time per node flat?"""
    for name, title in _measure.FRAMEWORKS.items():
        for phase in PHASES:
            points = [
                (size, float(getattr(outcomes[name], phase)))
                for size, outcomes in table.items()
                if size >= LEAST_SIZE_FOR_SLOPE and isinstance(outcomes[name], Measurement)
            ]
            if len(points) < 2:
                continue
            exponent = slope(points)
            verdict = "linear" if exponent <= GREATEST_LINEAR_SLOPE else "NOT LINEAR"
            sizes = f"{points[0][0]:,} to {points[-1][0]:,} nodes"
            print(f"check: {shape} {title} {phase}: time ~ nodes ** {exponent:.2f} over {sizes}: {verdict}")


def plot(path: Path, tables: Mapping[str, Mapping[int, Mapping[str, Measurement | str]]]) -> None:
    """Time and peak memory against size, both axes logarithmic, one row of panels for each shape."""
    import matplotlib  # only here: the table needs no plotting package

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(len(tables), 2, figsize=(11, 4 * len(tables)), squeeze=False)
    for (shape, table), (time_panel, memory_panel) in zip(tables.items(), panels, strict=True):
        for (name, title), colour in zip(_measure.FRAMEWORKS.items(), ("tab:orange", "tab:blue"), strict=True):
            measured = [(size, row[name]) for size, row in table.items()]
            points = [(size, one) for size, one in measured if isinstance(one, Measurement)]
            sizes = [size for size, _ in points]
            for phase, style in (("build", "--"), ("backward", "-")):
                seconds = [getattr(one, phase) / 1e9 for _, one in points]
                time_panel.loglog(sizes, seconds, style, marker="o", color=colour, label=f"{title} {phase}")
            large = [(size, one.peak_bytes / 1e6) for size, one in points if size >= LEAST_SIZE_FOR_MEMORY]
            memory_panel.loglog(*zip(*large, strict=True), marker="o", color=colour, label=title)
        time_panel.set(title=f"{shape} graph: time", xlabel="nodes", ylabel="seconds")
        memory_panel.set(title=f"{shape} graph: peak memory", xlabel="nodes", ylabel="MB")
        for panel in (time_panel, memory_panel):
            panel.grid(visible=True, alpha=0.3)
            if panel.lines:
                panel.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> int:
    """Measure the chosen graphs; 1 if Flambeau could not do one of them."""
    parser = _measure.parser(
        "Time and memory against graph size, Flambeau against PyTorch.", "only graphs whose 'shape nodes' matches"
    )
    parser.add_argument("--plot", metavar="FILE", type=Path, help="save a plot, for example graph_scale.png")
    options = parser.parse_args()
    sizes, rounds = (QUICK_SIZES, 1) if options.quick else (SIZES, 3)

    tables: dict[str, dict[int, dict[str, Measurement | str]]] = {}
    for shape in SHAPES:
        chosen = [size for size in sizes if options.only.search(f"{shape} {size}")]
        if not chosen:
            continue
        print_header(shape)
        tables[shape] = {}
        for size in chosen:
            tables[shape][size] = measure(shape, size, rounds)
            print_rows(size, tables[shape][size])
        print_linearity(shape, tables[shape])

    rows = [(f"{shape} {size}", row) for shape, table in tables.items() for size, row in table.items()]
    ratios: dict[str, float] = {}
    for name, row in rows:
        flambeau, pytorch = row["flambeau"], row["torch"]
        if isinstance(flambeau, Measurement) and isinstance(pytorch, Measurement):
            ratios[name] = flambeau.total / pytorch.total
    print()
    _measure.print_summary(ratios)
    if options.plot:
        plot(options.plot, tables)
    graphs = [
        {"graph": name, **{key: one if isinstance(one, str) else asdict(one) for key, one in row.items()}}
        for name, row in rows
    ]
    _measure.write_json(options.json, {"graphs": graphs})
    return 1 if any(isinstance(row["flambeau"], str) for _, row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
