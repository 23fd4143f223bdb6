"""The memory of large tensors: how much is in use, how much is kept for the next ones, and the limits of both.

Tensors of 128 KB or more come from a pool, as soon as generated kernels are in use; see `docs/memory.md`. The names
are those of device packages. Without a pool, which needs generated code, everything here is 0.
"""

from __future__ import annotations

import sys
from typing import Any

from .._backends.tiers import available

__all__ = [
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_peak_memory_stats",
    "set_memory_cache_limit",
    "set_per_process_memory_fraction",
]

_MODULE = "flambeau._backends.cpu.memory.allocator"


def _allocator() -> Any:
    """The allocator if it runs: a look at it does not start it."""
    module = sys.modules.get(_MODULE)
    return None if module is None else module.allocator()


def _started() -> Any:
    """The allocator, started if it did not run yet."""
    if available():
        from .._backends.cpu.memory import allocator

        allocator.start()
    return _allocator()


def _number(name: str) -> int:
    running = _allocator()
    return 0 if running is None else int(running[name])


def memory_allocated(device: Any = None) -> int:
    """The bytes of the blocks in which large tensors are."""
    return _number("allocated")


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that large tensors have been in at a time."""
    return _number("allocated_peak")


def memory_reserved(device: Any = None) -> int:
    """The bytes that the pool holds: those of large tensors, and those kept for the next ones."""
    return _number("reserved")


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the pool has held at a time."""
    return _number("reserved_peak")


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the highest values begin anew with the present ones."""
    running = _allocator()
    if running is not None:
        running.reset_peaks()


def empty_cache() -> None:
    """Give the memory that no tensor occupies back to the operating system."""
    running = _allocator()
    if running is not None:
        running.empty()


def memory_stats(device: Any = None) -> dict[str, int]:
    """Everything that the pool counts, under the names that device packages give it.

    `pool.running` is 1 if there is a pool.
    """
    running = _allocator()
    if running is None:
        return {"pool.running": 0}
    allocations, frees = running["allocations"], running["frees"]
    return {
        "allocated_bytes.all.current": running["allocated"],
        "allocated_bytes.all.peak": running["allocated_peak"],
        "allocation.all.allocated": allocations,
        "allocation.all.current": allocations - frees,
        "allocation.all.freed": frees,
        "num_alloc_retries": running["retries"],
        "num_ooms": running["failures"],
        "pool.cache_limit": running["cache_limit"],
        "pool.idle_blocks": running["idle_blocks"],
        "pool.reused": running["reused"],
        "pool.running": 1,
        "pool.total_limit": running["total_limit"],
        "requested_bytes.all.current": running["requested"],
        "requested_bytes.all.peak": running["requested_peak"],
        "reserved_bytes.all.current": running["reserved"],
        "reserved_bytes.all.peak": running["reserved_peak"],
        "segment.all.allocated": running["mapped"],
        "segment.all.current": running["mapped"] - running["unmapped"],
        "segment.all.freed": running["unmapped"],
    }


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The statistics as a table for people; `abbreviated` leaves out the counts."""
    stats = memory_stats()
    if not stats["pool.running"]:
        return "CPU memory pool: not running"
    stats["reserved_bytes.all.current"] - stats["allocated_bytes.all.current"]
    rows = [
        ("in use by tensors", "requested_bytes"),
        ("blocks of these", "allocated_bytes"),
        ("held by the pool", "reserved_bytes"),
    ]
    lines = [f"{'CPU memory pool':<20} {'now':>12} {'peak':>12}"]
    for title, name in rows:
        now, peak = stats[f"{name}.all.current"], stats[f"{name}.all.peak"]
        lines.append(f"{title:<20} {_size(now):>12} {_size(peak):>12}")
    if not abbreviated:
        lines.append(
            f"{stats['allocation.all.allocated']} allocations, {stats['pool.reused']} of them of memory used before; "
            f"{stats['num_alloc_retries']} needed idle memory back, {stats['num_ooms']} failed"
        )
    return "\n".join(lines)


def _size(size: int) -> str:
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def set_memory_cache_limit(limit: int) -> None:
    """Keep at most `limit` bytes for later tensors; a quarter of the machine's memory unless said otherwise."""
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise TypeError(f"set_memory_cache_limit expects a number of bytes, but got {type(limit).__name__}")
    if limit < 0:
        raise ValueError(f"set_memory_cache_limit expects a number of bytes that is not negative, but got {limit}")
    running = _started()
    if running is not None:
        running.set(cache_limit=min(limit, _MOST))
        if running["reserved"] - running["allocated"] > limit:
            running.empty()


_MOST = (1 << 63) - 1


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let large tensors take at most this part of the machine's memory: beyond it there is an error."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0.0~1.0")
    running = _started()
    if running is not None:
        from .._backends.cpu.memory.allocator import physical_memory

        running.set(total_limit=_MOST if fraction == 1 else int(physical_memory() * fraction))
