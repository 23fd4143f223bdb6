"""The memory of a CUDA device: what tensors hold, what the pool keeps, the highest of both so far."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from .._backends.cuda.driver import Pool, pool
from .._core.device import usable_device


def _pool() -> Pool:
    usable_device("cuda")
    return pool()


def memory_allocated(device: Any = None) -> int:
    """The bytes that tensors hold, rounded up to blocks."""
    return _pool().allocated()


def memory_reserved(device: Any = None) -> int:
    """The bytes that the pool has from the device, in use or kept for later."""
    return _pool().reserved()


def memory_cached(device: Any = None) -> int:
    """The old name of `memory_reserved`."""
    return memory_reserved(device)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors have held at a time."""
    return _pool().peak_allocated


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the pool has had."""
    return _pool().peak_reserved


def max_memory_cached(device: Any = None) -> int:
    """The old name of `max_memory_reserved`."""
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the highest values begin again from the present ones."""
    _pool().reset_peaks()


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = reset_peak_memory_stats


def empty_cache() -> None:
    """Give back to the device what the pool keeps and no tensor occupies."""
    _pool().give_back()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """How many bytes of the device are free, and how many there are."""
    return _pool().device_memory()


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let the pool have no more than a part of the device's memory."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _pool().limit(int(fraction * mem_get_info()[1]))


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part of the device's memory that the pool may have."""
    limit = _pool().limited_to
    return 1.0 if limit is None else limit / mem_get_info()[1]


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """What the pool knows, under PyTorch's names of it."""
    found = _pool()
    values = {
        "allocated_bytes.all.current": found.allocated(),
        "allocated_bytes.all.peak": found.peak_allocated,
        "allocation.all.allocated": found.allocations,
        "num_ooms": found.failures,
        "num_alloc_retries": found.retries,
        "reserved_bytes.all.current": found.reserved(),
        "reserved_bytes.all.peak": found.peak_reserved,
    }
    return OrderedDict(sorted(values.items()))


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """`memory_stats` as dictionaries in dictionaries."""
    result: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *path, last = name.split(".")
        place = result
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return result


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table of what the pool knows."""
    found = _pool()
    rows = [
        ("Allocated memory", found.allocated(), found.peak_allocated),
        ("GPU reserved memory", found.reserved(), found.peak_reserved),
    ]
    lines = [
        "PyTorch CUDA memory summary, device ID 0 (Flambeau)",
        f"CUDA OOMs: {found.failures}, retries: {found.retries}",
        f"{'Metric':<22}{'Cur Usage':>14}{'Peak Usage':>14}",
    ]
    lines += [f"{name:<22}{now / 2**20:>10.1f} MiB{peak / 2**20:>10.1f} MiB" for name, now, peak in rows]
    return "\n".join(lines)


def get_allocator_backend() -> str:
    """What gives memory out: a pool of its own, not the driver's."""
    return "native"
