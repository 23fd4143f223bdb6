"""Calls that are made without Python between them: the tables of `_codegen/machine/call_list.py`."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...._codegen.arrays import DATA
from ...._codegen.machine.allocator import THRESHOLD
from ...._codegen.machine.call_list import replay
from ...tiers import free_idle_memory

_ALIGNED = 64


_BYTES = np.dtype(np.uint8)

FROM_POOL = THRESHOLD
"""From so many bytes on a call list has memory only while it runs: taking it from the pool costs next to nothing."""


class Arena:
    """Memory for what lies between the calls of lists that do not run at the same time."""

    def __init__(self, size: int) -> None:
        self.flag = np.zeros(1, np.int64)
        """Whether one of the lists runs."""
        self._memory = np.empty(size + _ALIGNED, _BYTES)
        self.start = -(-address_of(self._memory) // _ALIGNED) * _ALIGNED


class CallList:
    """A list of calls, with what keeps alive the objects that it names by address."""

    def __init__(
        self,
        windows: Sequence[tuple[int, Any, int]],
        calls: Sequence[tuple[Any, tuple[Any, ...], dict[str, Any] | None]],
        refusals: Sequence[Any],
        conditions: Sequence[tuple[int, int]],
        extents: Sequence[tuple[int, int]],
        changes: Sequence[int],
        arena: Arena,
        workspace: int = 0,
    ) -> None:
        """`workspace`: how many bytes the last argument has for what lies between the calls; 0: there is none."""
        self.calls = list(calls)
        self.arena = arena
        self._kept = [*windows, *refusals]
        counted = conditions, extents, changes, windows, calls, refusals
        entries = [address_of(arena.flag), *map(len, counted)]
        for pair in (*conditions, *extents):
            entries += pair
        entries += changes
        for argument, header, offset in windows:
            entries += argument, id(header), offset, address_of(header)
        for function, args, options in calls:
            entries += id(function), id(args), 0 if options is None else id(options)
        entries += [id(each) for each in refusals]
        self.table = np.array(entries, np.int64)
        self.kernel = replay()
        self.run = _with_pool_memory(self.kernel, workspace) if workspace else self.kernel
        """(table, True, False, *arrays): whether it was done."""


def _with_pool_memory(run: Any, size: int) -> Callable[..., bool]:
    """A function with memory as a further argument."""

    def with_memory(*args: Any) -> bool:
        free_idle_memory()  # ops that run one by one have left it to each other
        done: bool = run(*args, np.empty(size, _BYTES))
        return done

    return with_memory


def address_of(array: Any) -> int:
    """Where an array begins."""
    place: int = array.__array_interface__["data"][0]
    return place


def header_of(shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...]) -> Any:
    """An array that a call list lets begin elsewhere: until then it lies in memory which many such arrays share."""
    reach = [(size - 1) * step for size, step in zip(shape, strides, strict=True)]
    low, high = (0, 0) if 0 in shape else (sum([min(each, 0) for each in reach]), sum([max(each, 0) for each in reach]))
    return np.ndarray(shape, dtype, _shared_memory(high - low + dtype.itemsize), -low, strides)


_SHARED = [mmap.mmap(-1, 1 << 21)]
"""The largest piece of memory for headers so far. As long as nobody writes there the system finds no pages for it."""


def _shared_memory(size: int) -> mmap.mmap:
    if size > len(_SHARED[0]):
        _SHARED[0] = mmap.mmap(-1, size)
    return _SHARED[0]


def point(header: Any, address: int) -> None:
    """Let an array that has no memory of its own begin at an address."""
    ctypes.c_void_p.from_address(id(header) + DATA).value = address
