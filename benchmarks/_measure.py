"""What the benchmarks share: loading both frameworks, alternating bursts, comparing results, printing summaries."""

from __future__ import annotations

import argparse
import datetime
import functools
import gc
import importlib
import itertools
import json
import math
import os
import platform
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

BENCHMARKS = Path(__file__).resolve().parent
CHECKOUT = BENCHMARKS.parent
FRAMEWORKS = {"flambeau": "Flambeau", "torch": "PyTorch"}

Run = Callable[[], object]
Burst = Callable[[int], float]


@dataclass(frozen=True)
class Timing:
    """Microseconds per call: the middle burst, by which frameworks are compared, and the quickest.

    With one framework in both places, ratios of medians scatter by 1 %, ratios of minima by 3 %.
    """

    median: float
    best: float


def parser(description: str, only_help: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    result = argparse.ArgumentParser(description=description)
    result.add_argument("--only", metavar="REGEX", type=re.compile, default=re.compile(""), help=only_help)
    result.add_argument("--quick", action="store_true", help="fewer and shorter measurements: a rough picture")
    result.add_argument("--json", metavar="FILE", type=Path, help="write the numbers to FILE as well")
    return result


def load(name: str, threads: int = 1) -> Any:
    """Import a framework, restricted to so many threads, or leave with a clear message if it is not there."""
    # One thread by default: more cannot help tiny tensors; they only add noise. NumPy's BLAS reads these when it is
    # first loaded.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)
    if str(CHECKOUT) not in sys.path:
        sys.path.append(str(CHECKOUT))  # last: an installed Flambeau goes before the checkout
    try:
        framework = importlib.import_module(name)
    except ImportError as error:
        raise SystemExit(f"{FRAMEWORKS[name]} cannot be imported: {error}") from error
    if hasattr(framework, "set_num_threads"):
        framework.set_num_threads(threads)
    return framework


@contextmanager
def garbage_collector(enabled: bool) -> Iterator[None]:
    """Start from a collected heap, with the cycle collector on or off; the caller's setting comes back at the end."""
    was_enabled = gc.isenabled()
    gc.collect()
    (gc.enable if enabled else gc.disable)()
    try:
        yield
    finally:
        (gc.enable if was_enabled else gc.disable)()


def burst(run: Run, calls: int) -> float:
    """Seconds that `calls` calls of `run` take."""
    repetitions = itertools.repeat(None, calls)
    start = perf_counter()
    for _ in repetitions:
        run()
    return perf_counter() - start


def calls_per_burst(take: Burst, seconds: float) -> int:
    """How many calls fill about `seconds`. Doubling to get there also warms up what is called."""
    calls = 1
    while (taken := take(calls)) < seconds / 2:
        calls *= 2
    return max(1, round(calls * seconds / taken))


def alternate(runs: Sequence[Run], rounds: int, seconds: float, collect: bool, limit: float = math.inf) -> list[Timing]:
    """Time `runs` in short bursts that take turns, so that a slow moment of the machine falls on all of them.

    After `limit` seconds there are no further rounds, if there were `FEWEST_ROUNDS`.
    """
    with garbage_collector(collect):
        return alternate_bursts([functools.partial(burst, run) for run in runs], rounds, seconds, limit)


FEWEST_ROUNDS = 9
"""Of calls that take long: a slow moment falls on a part of one, and the quickest of few is as good as of many."""


def alternate_bursts(bursts: Sequence[Burst], rounds: int, seconds: float, limit: float = math.inf) -> list[Timing]:
    """The same for functions that take the number of calls, and return how many seconds these took."""
    calls = [calls_per_burst(take, seconds) for take in bursts]
    taken: list[list[float]] = [[] for _ in bursts]
    order = list(range(len(bursts)))
    end = perf_counter() + limit
    for number in range(rounds):
        if number >= FEWEST_ROUNDS and perf_counter() > end:
            break
        for index in order:
            taken[index].append(bursts[index](calls[index]) / calls[index] * 1e6)
        order.reverse()  # neither always follows the other
    return [Timing(statistics.median(times), min(times)) for times in taken]


def plain(value: Any) -> Any:
    """A tensor, or a nest of them, as plain Python values, the same for both frameworks."""
    if hasattr(value, "tolist"):
        return [str(value.dtype), list(value.shape), value.tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, int, float)):
        return value
    return str(value)


def same(left: Any, right: Any) -> bool:
    """Whether two results of `plain` agree, up to float32's rounding."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-5, abs_tol=1e-6)
    return type(left) is type(right) and bool(left == right)


def geometric_mean(ratios: Iterable[float]) -> float:
    """The mean that treats twice as fast and twice as slow as opposites."""
    return statistics.geometric_mean(ratios)


def print_summary(ratios: Mapping[str, float], goal: str = "") -> None:
    """The geometric mean and the worst case of Flambeau's time over PyTorch's."""
    if not ratios:
        print("nothing was measured in both frameworks")
        return
    worst = max(ratios, key=lambda name: ratios[name])
    print(f"geometric mean of {len(ratios)} ratios: {geometric_mean(ratios.values()):.3f}")
    print(f"worst ratio: {ratios[worst]:.3f} ({worst})")
    if goal:
        print(f"goal: {goal}")


def write_json(path: Path | None, content: Mapping[str, object]) -> None:
    """Write `content` with the date and a description of the machine, if a file is wanted."""
    if path is None:
        return
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    about = {"machine": machine, "date": datetime.date.today().isoformat()}
    path.write_text(json.dumps({**about, **content}, indent=2) + "\n", encoding="utf-8")
