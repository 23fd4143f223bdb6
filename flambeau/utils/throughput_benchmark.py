"""Many calls at once, under the names of `torch.utils.throughput_benchmark`."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent("calls from many threads of C++ are not built", classes="ThroughputBenchmark ExecutionStats")
    .parts()
)


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
