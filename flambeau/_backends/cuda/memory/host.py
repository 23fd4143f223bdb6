"""Page-locked memory of the host, from and to which a GPU copies by itself, while the host goes on.

It is kept for the next one who needs it, in sizes that are powers of two, but not before the copies are done.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from typing import Any, Protocol

import numpy as np

from ...._core.process.locks import new_reentrant_lock
from ...._core.storage import owner_of
from .statistics import Gauge


class HostSupplier(Protocol):
    """The device, as page-locked memory needs it."""

    def take_host(self, nbytes: int) -> int:
        """The address of new page-locked memory."""

    def give_host(self, pointer: int) -> None:
        """Give page-locked memory back to the system."""

    def mark(self, ordinal: int, stream: int) -> Any:
        """A mark in a queue of a device."""

    def reached(self, mark: Any) -> bool:
        """Whether a queue has come to a mark."""


class PinnedMemory:
    """Page-locked memory in use; NumPy sees it as bytes. It goes back to its pool when nothing refers to it."""

    __slots__ = ("__array_interface__", "pointer", "pool", "size", "users")

    def __init__(self, pointer: int, size: int, pool: HostPool, nbytes: int) -> None:
        self.pointer = pointer
        self.size = size
        self.pool = pool
        self.users: set[tuple[int, int]] = set()
        """The queues that copy from it or to it, each with its device: all default queues have one handle."""
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (pointer, False)}

    def __del__(self) -> None:
        self.pool.returned.append((self.pointer, self.size, self.users))


class HostPool:
    """Hands out page-locked memory."""

    def __init__(self, supplier: HostSupplier) -> None:
        self._supplier = supplier
        self._lock = new_reentrant_lock()
        self._free: dict[int, list[int]] = {}
        self._waiting: list[tuple[list[Any], int, int]] = []
        self.returned: deque[tuple[int, int, set[tuple[int, int]]]] = deque()
        self.reset_sums()
        self.in_use, self.bytes_in_use, self.segments, self.reserved = Gauge(), Gauge(), Gauge(), Gauge()

    def reset_sums(self) -> None:
        """Let the times of calls to the driver begin again."""
        self._taking: list[int] = []
        self._giving: list[int] = []

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array in page-locked memory, uninitialised."""
        dtype = np.dtype(dtype)
        nbytes = max(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize, 1)
        size = 1 << (nbytes - 1).bit_length() if nbytes > 1 else 1
        with self._lock:
            self._collect()
            free = self._free.get(size)
            pointer = free.pop() if free else self._take(size)
            self.in_use.add(1)
            self.bytes_in_use.add(size)
        return np.ndarray(shape, dtype, np.asarray(PinnedMemory(pointer, size, self, nbytes)))

    def _take(self, size: int) -> int:
        begin = time.perf_counter_ns()
        pointer = self._supplier.take_host(size)
        self._taking.append((time.perf_counter_ns() - begin) // 1000)
        self.segments.add(1)
        self.reserved.add(size)
        return pointer

    def _collect(self) -> None:
        while self.returned:
            pointer, size, users = self.returned.popleft()
            self._waiting.append(([self._supplier.mark(*each) for each in sorted(users)], pointer, size))
            self.in_use.add(-1)
            self.bytes_in_use.add(-size)
        for entry in self._waiting[:]:
            marks, pointer, size = entry
            if all(self._supplier.reached(mark) for mark in marks):
                self._waiting.remove(entry)
                self._free.setdefault(size, []).append(pointer)

    def give_back(self) -> None:
        """Return to the system what is not in use."""
        with self._lock:
            self._collect()
            for size, pointers in self._free.items():
                for pointer in pointers:
                    begin = time.perf_counter_ns()
                    self._supplier.give_host(pointer)
                    self._giving.append((time.perf_counter_ns() - begin) // 1000)
                    self.segments.add(-1)
                    self.reserved.add(-size)
            self._free.clear()

    def table(self) -> OrderedDict[str, int]:
        """The statistics of page-locked memory, as PyTorch's `host_memory_stats` has them."""
        with self._lock:
            self._collect()
            gauges = {
                "active_requests": self.in_use, "active_bytes": self.bytes_in_use, "allocations": self.segments,
                "allocated_bytes": self.reserved,
            }  # fmt: skip
            found = {f"{name}.{key}": value for name, gauge in gauges.items() for key, value in gauge.values().items()}
            for name, times in (("host_alloc_time", self._taking), ("host_free_time", self._giving)):
                total, count = sum(times), len(times)
                found |= {f"{name}.total": total, f"{name}.count": count, f"{name}.avg": total // count if count else 0}
                found |= {f"{name}.max": max(times, default=0), f"{name}.min": min(times, default=0)}
            found |= {"num_host_alloc": len(self._taking), "num_host_free": len(self._giving)}
            return OrderedDict(sorted(found.items()))

    def reset_peaks(self) -> None:
        """Let the highest values begin again from the present ones."""
        for each in (self.in_use, self.bytes_in_use, self.segments, self.reserved):
            each.peak = each.current


def pinned_memory(array: Any) -> PinnedMemory | None:
    """The page-locked memory that a host array lies in; None: it lies elsewhere."""
    base = owner_of(array).base
    base = getattr(base, "obj", base)
    while type(base) is np.ndarray:
        base = base.base
    return base if type(base) is PinnedMemory else None
