"""The memory of a CUDA device: what tensors hold, what the pool keeps, the highest of both so far."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import sys
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._backends.cuda.memory.block import USED, WAITING, PooledMemory
from .._backends.cuda.memory.history import History, frames_of, traces_of
from .._backends.cuda.memory.pool import Pool
from .._backends.cuda.memory.statistics import nested
from .._backends.cuda.memory.summary import summary
from .._backends.cuda.runtime.driver import driver
from .._core.device import usable_device
from .._core.process.caller import warn_user
from .._core.text.inherited_docs import documented_like
from ._memory_page import memory_page
from ._ordinals import driver_of, on, on_each_device
from ._streams import Stream

__all__ = [
    "CUDAPluggableAllocator", "MemPool", "caching_allocator_alloc", "caching_allocator_delete",
    "caching_allocator_disabled", "caching_allocator_enable", "change_current_allocator", "empty_cache",
    "get_allocator_backend", "get_per_process_memory_fraction", "host_memory_stats",
    "host_memory_stats_as_nested_dict", "max_memory_allocated", "max_memory_cached", "max_memory_reserved",
    "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats",
    "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_peak_host_memory_stats", "reset_peak_memory_stats", "set_per_process_memory_fraction", "use_mem_pool",
]  # fmt: skip


def _pool(device: Any = None) -> Pool:
    return driver_of(device).pool


def memory_allocated(device: Any = None) -> int:
    """The bytes that tensors hold, rounded up to blocks.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        int: the number of bytes.

    Example:
        >>> before = torch.cuda.memory_allocated()
        >>> x = torch.ones(1024, device="cuda")
        >>> torch.cuda.memory_allocated() - before
        4096
    """
    return _pool(device).allocated()


@documented_like(memory_allocated)
def memory_reserved(device: Any = None) -> int:
    """The bytes that the pool has from the device, in use or kept for later.

    Example:
        >>> torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
        True
    """
    return _pool(device).reserved()


@documented_like(memory_allocated)
def memory_cached(device: Any = None) -> int:
    """The old name of `memory_reserved`."""
    _warn_of_old("memory_cached", "memory_reserved")
    return memory_reserved(device)


@documented_like(memory_allocated)
def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors have held at a time.

    Example:
        >>> x = torch.ones(1024, device="cuda")
        >>> torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated() >= 4096
        True
    """
    return _pool(device).counted().gauges["allocated_bytes.all"].peak


@documented_like(memory_allocated)
def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the pool has had.

    Example:
        >>> torch.cuda.max_memory_reserved() >= torch.cuda.memory_reserved()
        True
    """
    return _pool(device).counted().gauges["reserved_bytes.all"].peak


@documented_like(memory_allocated)
def max_memory_cached(device: Any = None) -> int:
    """The old name of `max_memory_reserved`."""
    _warn_of_old("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def _warn_of_old(old: str, new: str) -> None:
    warn_user(f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the highest values begin again from the present ones.

    Args:
        device: the device or its ordinal; None means the one in use.

    Example:
        >>> torch.cuda.reset_peak_memory_stats()
        >>> torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated()
        True
    """
    _pool(device).counted().reset_peaks()


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Let the sums of all that was taken and given back begin again.

    Args:
        device: the device or its ordinal; None means the one in use.

    Example:
        >>> torch.cuda.reset_accumulated_memory_stats()
    """
    _pool(device).counted().reset_sums()


@documented_like(reset_peak_memory_stats)
def reset_max_memory_allocated(device: Any = None) -> None:
    """The old name of `reset_peak_memory_stats`."""
    warn_user("torch.cuda.reset_max_memory_allocated now calls torch.cuda.reset_peak_memory_stats", FutureWarning)
    reset_peak_memory_stats(device)


@documented_like(reset_peak_memory_stats)
def reset_max_memory_cached(device: Any = None) -> None:
    """The old name of `reset_peak_memory_stats`."""
    warn_user("torch.cuda.reset_max_memory_cached now calls torch.cuda.reset_peak_memory_stats", FutureWarning)
    reset_peak_memory_stats(device)


def empty_cache() -> None:
    """Give back to the device what the pool keeps and no tensor occupies.

    Example:
        >>> torch.cuda.empty_cache()
    """
    for each in on_each_device():
        each.pool.give_back()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """How many bytes of the device are free, and how many there are.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        tuple[int, int]: both numbers.

    Example:
        >>> free, total = torch.cuda.mem_get_info()
        >>> free <= total
        True
    """
    with on(device):
        return _pool(device).device_memory()


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let the pool have no more than a part of the device's memory.

    Args:
        fraction (float): the part, between 0 and 1.
        device: the device or its ordinal; None means the one in use.

    Example:
        >>> torch.cuda.set_per_process_memory_fraction(1.0)
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    pool = _pool(device)
    pool.limit = None if fraction == 1 else int(fraction * mem_get_info(device)[1])


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part of the device's memory that the pool may have.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        float: the part.

    Example:
        >>> torch.cuda.get_per_process_memory_fraction()
        1.0
    """
    pool = _pool(device)
    return 1.0 if pool.limit is None else pool.limit / mem_get_info(device)[1]


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """What the pool has counted, under PyTorch's names of it.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        OrderedDict[str, Any]: numbers by name.

    Example:
        >>> x = torch.ones(1024, device="cuda")
        >>> torch.cuda.memory_stats()["allocated_bytes.all.current"] == torch.cuda.memory_allocated()
        True
    """
    return _pool(device).table()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """`memory_stats` as dictionaries in dictionaries.

    Args:
        device: the device or its ordinal; None means the one in use.

    Returns:
        the dictionaries.

    Example:
        >>> isinstance(torch.cuda.memory_stats_as_nested_dict(), dict)
        True
    """
    return nested(memory_stats(device))


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table of what the pool has counted.

    Args:
        device: the device or its ordinal; None means the one in use.
        abbreviated (bool): whether the table is shorter. Default: `False`.

    Returns:
        str: the table.

    Example:
        >>> "allocated" in torch.cuda.memory_summary().lower()
        True
    """
    return summary(memory_stats(device), abbreviated)


def host_memory_stats() -> OrderedDict[str, Any]:
    """What was counted about page-locked memory of the host.

    Returns:
        OrderedDict[str, Any]: numbers by name.

    Example:
        >>> isinstance(torch.cuda.host_memory_stats(), dict)
        True
    """
    usable_device("cuda")
    return driver().host_pool.table()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """`host_memory_stats` as dictionaries in dictionaries.

    Returns:
        the dictionaries.

    Example:
        >>> isinstance(torch.cuda.host_memory_stats_as_nested_dict(), dict)
        True
    """
    return nested(host_memory_stats())


def reset_peak_host_memory_stats() -> None:
    """Let the highest values of the host's memory begin again from the present ones.

    Example:
        >>> torch.cuda.reset_peak_host_memory_stats()
    """
    usable_device("cuda")
    driver().host_pool.reset_peaks()


def reset_accumulated_host_memory_stats() -> None:
    """Let the sums of the host's memory begin again.

    Example:
        >>> torch.cuda.reset_accumulated_host_memory_stats()
    """
    usable_device("cuda")
    driver().host_pool.reset_sums()


# ----- what the pool consists of ------------------------------------------------------------------------------------


_STATES = {USED: "active_allocated", WAITING: "active_pending_free"}


def memory_snapshot(mempool_id: tuple[int, int] | None = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """The segments that the pool has from the device, and the blocks that they are cut into.

    Args:
        mempool_id (tuple[int, int], optional): the pool; None means all.
        include_traces (bool): whether the lines that took the memory are included. Default: `True`.

    Returns:
        list[dict]: a dict for each segment.

    Example:
        >>> x = torch.ones(1024, device="cuda")
        >>> len(torch.cuda.memory_snapshot()) > 0
        True
    """
    wanted = None if mempool_id is None else mempool_id[1]
    found = []
    for pool, (address, size, blocks) in [
        (own.pool, each) for own in on_each_device() for each in own.pool.segments(wanted)
    ]:
        shelf, at = blocks[0].shelf, address
        parts: list[dict[str, Any]] = []
        for block in blocks:
            used = block.state == USED
            parts.append({
                "address": at, "size": block.size, "requested_size": block.requested if used else 0,
                "state": _STATES.get(block.state, "inactive"),
                "frames": frames_of(block.stack) if include_traces and block.state in _STATES else [],
            })  # fmt: skip
            at += block.size
        in_use = [part for part in parts if part["state"] == "active_allocated"]
        held = sum(part["size"] for part in in_use)
        found.append({
            "device": shelf.ordinal, "address": address, "total_size": size, "allocated_size": held,
            "active_size": held, "requested_size": sum(part["requested_size"] for part in in_use),
            "stream": shelf.stream, "segment_type": "small" if shelf.small else "large",
            "segment_pool_id": (0, shelf.pool), "is_expandable": pool.grows(blocks[0]), "frames": [], "blocks": parts,
        })  # fmt: skip
    return found


def _record_memory_history(
    enabled: str | bool | None = "all", context: str | None = "all", stacks: str = "all",
    max_entries: int = sys.maxsize, device: Any = None, clear_history: bool = False, compile_context: bool = False,
    global_record_annotations: bool = False, skip_actions: list[str] | None = None,
) -> None:  # fmt: skip
    """Write down, or do not any more, what the pools of memory do, with the lines of the program that asked for it.

    Args:
        enabled (str or bool, optional): `"all"` for every step, `"state"` for what is in use, None for nothing.
        context (str, optional): None leaves the lines out.
        stacks (str): PyTorch's choice of frames; here all are of Python.
        max_entries (int): how many steps are kept, the last ones.
        device: not used; all devices are recorded.
        clear_history (bool): whether steps of before are forgotten.
        compile_context (bool): not used.
        global_record_annotations (bool): not used.
        skip_actions (list[str], optional): the kinds of steps that are not kept.
    """
    if enabled not in (None, "state", "all", True, False):
        raise RuntimeError(f"expected state to be 'state', 'all', or None, but got {enabled!r}")
    for each in on_each_device():
        before = each.pool.history
        if not enabled:
            each.pool.history = None
            continue
        each.pool.history = made = History(enabled != "state", context is not None, max_entries, skip_actions or ())
        if before is not None and not clear_history:
            made.entries.extend(before.entries)


def _snapshot(device: Any = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """Segments, blocks and steps of all pools, in the form of PyTorch's viewer."""
    pools = [each.pool for each in on_each_device()]
    settings = pools[0].settings
    return {
        "segments": memory_snapshot(),
        "device_traces": [traces_of(each.history) for each in pools],
        "allocator_settings": {
            "PYTORCH_CUDA_ALLOC_CONF": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""),
            "max_split_size": -1 if settings.max_split_size is None else settings.max_split_size,
            "garbage_collection_threshold": settings.collection_threshold,
            "expandable_segments": settings.expandable,
        },
        "external_annotations": [],
    }


def _dump_snapshot(filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False) -> None:
    """Write `_snapshot` to a file; one that ends in `.html` is a page with a timeline, which needs no viewer."""
    found = _snapshot()
    if str(filename).endswith(".html"):
        Path(filename).write_text(memory_page(found), encoding="utf-8")
        return
    with open(filename, "wb") as file:
        pickle.dump(found, file)


def _set_allocator_settings(env: str) -> None:
    """Take settings in the form of `PYTORCH_CUDA_ALLOC_CONF` for all devices.

    Args:
        env (str): the settings.
    """
    for each in on_each_device():
        each.pool.configure(env)


# ----- who hands memory out -----------------------------------------------------------------------------------------

_handed_out: dict[int, PooledMemory] = {}


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """The address of memory from the pool, for others; `caching_allocator_delete` takes it back.

    Args:
        size (int): how many bytes.
        device: the device or its ordinal; None means the one in use.
        stream: the stream; None means the one in use.

    Returns:
        int: the address.

    Example:
        >>> address = torch.cuda.caching_allocator_alloc(1024)
        >>> torch.cuda.caching_allocator_delete(address)
    """
    pool = _pool(device)
    memory = pool.allocate(size)
    if stream is not None:
        pool.used_by(memory, pool.ordinal, stream.cuda_stream if isinstance(stream, Stream) else int(stream))
    _handed_out[memory.ptr] = memory
    return memory.ptr


def caching_allocator_delete(mem_ptr: int) -> None:
    """Take back what `caching_allocator_alloc` gave.

    Args:
        mem_ptr (int): the address.

    Example:
        >>> torch.cuda.caching_allocator_delete(torch.cuda.caching_allocator_alloc(1024))
    """
    if mem_ptr not in _handed_out:
        raise RuntimeError(f"invalid device pointer: {mem_ptr:#x} was not handed out by caching_allocator_alloc")
    del _handed_out[mem_ptr]


def caching_allocator_enable(value: bool = True) -> None:
    """Whether memory that nobody needs is kept for later.

    Args:
        value (bool): whether it is kept. Default: `True`.

    Example:
        >>> torch.cuda.caching_allocator_enable(True)
    """
    for each in on_each_device():
        each.pool.keep(bool(value))
    if not value:
        empty_cache()


@contextlib.contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """A context in which memory that nobody needs goes back to the device.

    Returns:
        a context manager.

    Example:
        >>> with torch.cuda.caching_allocator_disabled():
        ...     x = torch.ones(2, device="cuda")
    """
    before = _pool().keeps
    caching_allocator_enable(False)
    try:
        yield
    finally:
        caching_allocator_enable(before)


def get_allocator_backend() -> str:
    """What hands memory out: a pool of its own, not the driver's.

    Returns:
        str: its name.

    Example:
        >>> torch.cuda.get_allocator_backend()
        'native'
    """
    return "native"


class CUDAPluggableAllocator:
    """Two functions of a shared library that take memory from the device and give it back."""

    def __init__(self, path_to_so_file: str, alloc_fn_name: str, free_fn_name: str) -> None:
        library = ctypes.CDLL(path_to_so_file)
        self._take, self._give = getattr(library, alloc_fn_name), getattr(library, free_fn_name)
        self._take.restype = ctypes.c_void_p
        self._take.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
        self._give.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]

    def allocator(self) -> CUDAPluggableAllocator:
        """What `change_current_allocator` takes."""
        return self

    def take(self, nbytes: int, stream: int) -> int:
        """Memory from the library; 0: it has none."""
        return int(self._take(nbytes, driver().ordinal, stream) or 0)

    def give(self, pointer: int, nbytes: int) -> None:
        """Return it."""
        self._give(pointer, nbytes, driver().ordinal, None)


def change_current_allocator(allocator: CUDAPluggableAllocator) -> None:
    """Let segments come from another allocator; only before there is any.

    Args:
        allocator (CUDAPluggableAllocator): the allocator.
    """
    pool = _pool()
    if pool.reserved():
        raise RuntimeError("Can't swap an already initialized allocator")
    pool.take_segments_from(allocator)


class MemPool:
    """A pool of memory beside the common one, for what is allocated in `use_mem_pool`.

    Args:
        allocator (optional): where its segments come from. Default: the device.
        use_on_oom (bool): whether its free blocks serve requests outside the pool, too, for which the device has no
            memory left. Default: `False`.
        no_split (bool): whether each of its segments serves one tensor and is never cut. Default: `False`.
    """

    def __init__(self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False) -> None:
        self._pool = _pool()
        self._number = self._pool.new_pool(use_on_oom, not no_split)
        self._pool.hold(self._number)
        self._allocator = allocator
        if allocator is not None:
            self._pool.take_segments_from(allocator, self._number)

    @property
    def allocator(self) -> Any:
        """What the pool's segments come from; None: the device itself."""
        return self._allocator

    @property
    def id(self) -> tuple[int, int]:
        """What names the pool; `CUDAGraph.capture_begin` takes it too."""
        return 0, self._number

    def use_count(self) -> int:
        """How many use it."""
        return self._pool.holders(self._number)

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """The part of `memory_snapshot` that is about this pool."""
        return memory_snapshot(self.id, include_traces)

    def __del__(self) -> None:
        if "_number" in vars(self):
            self._pool.let_go(self._number)


@contextlib.contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """A context in which this thread's memory comes from `pool`.

    Args:
        pool (MemPool): the pool.
        device: the device or its ordinal; None means the one in use.

    Returns:
        a context manager.
    """
    with _pool(device).taking_from(pool.id[1]):
        yield
