"""What processes do with a store together, under the names of `torch.distributed.elastic.utils.store`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

__all__ = ["barrier", "get_all", "store_timeout", "synchronize"]

_LAST = "last_member"


@contextlib.contextmanager
def store_timeout(store: Any, timeout: float) -> Iterator[None]:
    """In this block a store waits at most so many seconds."""
    before = store.timeout
    store.set_timeout(timedelta(seconds=timeout))
    try:
        yield
    finally:
        store.set_timeout(before)


def get_all(store: Any, rank: int, prefix: str, world_size: int) -> list[bytes]:
    """The values under `prefix0`, `prefix1`, ... of all processes; each waits until all others have them too."""
    found = store.multi_get([f"{prefix}{number}" for number in range(world_size)])
    key = _count(store, world_size, f"{prefix}/finished")
    if rank == 0:  # whoever has the store must not close it before all have read
        store.get(key)
    return list(found)


def _count(store: Any, world_size: int, prefix: str) -> str:
    """Say that this process has come; the key that the last one sets."""
    if store.add(f"{prefix}/num_members", 1) == world_size:
        store.set(f"{prefix}/{_LAST}", "<val_ignored>")
    return f"{prefix}/{_LAST}"


def synchronize(
    store: Any, data: bytes, rank: int, world_size: int, key_prefix: str, timeout: float = 300
) -> list[bytes]:
    """Every process gives its bytes, and gets those of all."""
    with store_timeout(store, timeout):
        store.set(f"{key_prefix}{rank}", data)
        return get_all(store, rank, key_prefix, world_size)


def barrier(
    store: Any, world_size: int, key_prefix: str, barrier_timeout: float = 300, rank: int | None = None,
    rank_tracing_decoder: Any = None, trace_timeout: float = 10,
) -> None:  # fmt: skip
    """Wait for all processes."""
    with store_timeout(store, barrier_timeout):
        store.get(_count(store, world_size, key_prefix))
