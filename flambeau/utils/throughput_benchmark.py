"""Many calls at once, under the names of `torch.utils.throughput_benchmark`."""

from __future__ import annotations

import random
import threading
import time
from typing import Any, NamedTuple

from .._core.process.caller import warn_user

__all__ = ["ExecutionStats", "ThroughputBenchmark", "format_time"]


def format_time(time_us: float | None = None, time_ms: float | None = None, time_s: float | None = None) -> str:
    """A time with the unit that suits it."""
    given = [each for each in (time_us, time_ms, time_s) if each is not None]
    if len(given) != 1:
        raise AssertionError("Expected exactly one of time_us, time_ms, time_s to be set")
    microseconds = time_us if time_us is not None else time_ms * 1e3 if time_ms is not None else (time_s or 0.0) * 1e6
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.3f}ms"
    return f"{microseconds:.3f}us"


class _Options(NamedTuple):
    num_calling_threads: int
    num_warmup_iters: int
    num_iters: int


class _Measured(NamedTuple):
    latency_avg_ms: float
    num_iters: int


class ExecutionStats:
    """What a benchmark measured."""

    def __init__(self, c_stats: Any, benchmark_config: Any) -> None:
        self._c_stats = c_stats
        self.benchmark_config = benchmark_config

    @property
    def latency_avg_ms(self) -> float:
        """How long a call took on average, in milliseconds."""
        return float(self._c_stats.latency_avg_ms)

    @property
    def num_iters(self) -> int:
        """How many calls there were."""
        return int(self._c_stats.num_iters)

    @property
    def iters_per_second(self) -> float:
        """How many calls all threads together made in a second."""
        return self.num_iters / self.total_time_seconds

    @property
    def total_time_seconds(self) -> float:
        """How long each thread called, on average."""
        return self.num_iters * (self.latency_avg_ms / 1000.0) / float(self.benchmark_config.num_calling_threads)

    def __str__(self) -> str:
        return "\n".join(
            [
                f"Average latency per example: {format_time(time_ms=self.latency_avg_ms)}",
                f"Total number of iterations: {self.num_iters}",
                f"Total number of iterations per second (across all threads): {self.iters_per_second:.2f}",
                f"Total time: {format_time(time_s=self.total_time_seconds)}",
            ]
        )


class ThroughputBenchmark:
    """Calls a module from several threads with inputs chosen at random, and measures how long calls take.

    Args:
        module: the module.

    Example:
        >>> benchmark = torch.utils.ThroughputBenchmark(torch.nn.Linear(2, 2))
        >>> benchmark.add_input(torch.ones(1, 2))
        >>> stats = benchmark.benchmark(num_calling_threads=1, num_warmup_iters=1, num_iters=2)
        >>> stats.latency_avg_ms > 0
        True
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._inputs: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def run_once(self, *args: Any, **kwargs: Any) -> Any:
        """One call with given arguments, to see that it works."""
        return self._module(*args, **kwargs)

    def add_input(self, *args: Any, **kwargs: Any) -> None:
        """One more choice of arguments."""
        self._inputs.append((args, kwargs))

    def benchmark(
        self, num_calling_threads: int = 1, num_warmup_iters: int = 10, num_iters: int = 100,
        profiler_output_path: str = "",
    ) -> ExecutionStats:  # fmt: skip
        """`num_iters` calls by `num_calling_threads` threads together, after some that do not count."""
        if not self._inputs:
            raise RuntimeError("Please provide benchmark inputs. Did you forget to call add_input()?")
        if profiler_output_path:
            warn_user("ThroughputBenchmark writes no profile: use torch.profiler around it")
        choices = [random.Random(seed).choices(self._inputs, k=num_iters) for seed in range(num_calling_threads)]
        share = -(-num_iters // num_calling_threads)
        times: list[float] = []

        def call(mine: list[Any]) -> None:
            for args, kwargs in mine[:num_warmup_iters]:
                self._module(*args, **kwargs)
            for args, kwargs in mine[:share]:
                start = time.perf_counter()
                self._module(*args, **kwargs)
                times.append(time.perf_counter() - start)

        threads = [threading.Thread(target=call, args=(each,)) for each in choices]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        measured = _Measured(sum(times) / len(times) * 1000, len(times))
        return ExecutionStats(measured, _Options(num_calling_threads, num_warmup_iters, num_iters))
