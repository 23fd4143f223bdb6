"""A pool of processes to which tensors travel as shared memory."""

from __future__ import annotations

import gc
import multiprocessing.pool
from multiprocessing.util import debug
from typing import Any

from .queue import SimpleQueue

__all__ = ["Pool", "clean_worker"]


def clean_worker(*args: Any, **kwargs: Any) -> None:
    """What a process of the pool does; in the end it collects its garbage, so that shared memory is given back."""
    vars(multiprocessing.pool)["worker"](*args, **kwargs)  # a name that type checkers do not know
    gc.collect()


class Pool(multiprocessing.pool.Pool):
    """Python's pool, with queues that share tensors."""

    def _setup_queues(self) -> None:
        own: Any = self
        own._inqueue, own._outqueue = SimpleQueue(ctx=own._ctx), SimpleQueue(ctx=own._ctx)
        own._quick_put, own._quick_get = own._inqueue._writer.send, own._outqueue._reader.recv

    def _repopulate_pool(self) -> None:
        own: Any = self
        for _ in range(own._processes - len(own._pool)):
            arguments = (own._inqueue, own._outqueue, own._initializer, own._initargs, own._maxtasksperchild)
            process = own.Process(own._ctx, target=clean_worker, args=(*arguments, own._wrap_exception))
            own._pool.append(process)
            process.name = process.name.replace("Process", "PoolWorker")
            process.daemon = True
            process.start()
            debug("added worker")
