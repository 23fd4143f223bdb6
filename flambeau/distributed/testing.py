"""Several ranks in one process, for tests: each is a thread with groups of its own.

def work(rank):
    x = flambeau.ones(2) * rank
    flambeau.distributed.all_reduce(x)
    return x.tolist()

flambeau.distributed.testing.run_in_threads(work, 2)
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ._world import World, destroy_process_group, init_process_group, is_initialized
from .stores import HashStore

__all__ = ["run_in_threads"]


def run_in_threads(
    function: Callable[[int], Any], world_size: int, timeout: timedelta = timedelta(seconds=120)
) -> list[Any]:
    """What `function(rank)` returns on each rank of a group of threads; the first error of one of them is raised.

    The threads speak over the same engine as processes do.
    """
    store = HashStore()
    results: list[Any] = [None] * world_size
    errors: list[tuple[int, BaseException]] = []

    def run(rank: int) -> None:
        own = World()
        own.enter()
        try:
            init_process_group("gloo", store=store, rank=rank, world_size=world_size, timeout=timeout)
            results[rank] = function(rank)
        except BaseException as error:
            errors.append((rank, error))
        finally:
            if is_initialized():
                destroy_process_group()
            World.leave()

    threads = [
        threading.Thread(target=run, args=(rank,), name=f"rank {rank}", daemon=True) for rank in range(world_size)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        rank, error = errors[0]
        error.args = (f"on rank {rank}: {error.args[0] if error.args else ''}", *error.args[1:])
        raise error
    return results
