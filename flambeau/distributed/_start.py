"""The engine of the group of all processes: which one, and how the processes meet."""

from __future__ import annotations

import os
from datetime import timedelta

from ._engines import Engine
from ._rendezvous import met, rendezvous
from .stores import HashStore, PrefixStore, Store

_OURS = ("gloo", "undefined", "")


def backend_for_cpu(backend: str | None) -> str:
    """The part of a backend's name that is about the CPU: 'gloo' in 'cpu:gloo,cuda:nccl'."""
    name = (backend or "").lower()
    if ":" in name:
        by_device = dict(part.split(":", 1) for part in name.split(",") if ":" in part)
        name = by_device.get("cpu", next(iter(by_device.values())))
    return name


def started_engine(
    backend: str | None,
    init_method: str | None,
    timeout: timedelta,
    world_size: int,
    rank: int,
    store: Store | None,
    prefix: str,
) -> tuple[Engine, Store]:
    """The engine, and the store by which the processes met."""
    name = backend_for_cpu(backend)
    if name == "mpi":
        from ._mpi import MPIEngine

        engine = MPIEngine.whole(timeout.total_seconds())
        expected = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", engine.size))
        if engine.size != expected:
            raise RuntimeError(
                f"{expected} processes are expected, and MPI knows of {engine.size}: it joins only those that mpiexec "
                "started. Use the backend 'gloo' with other launchers"
            )
        return engine, HashStore()
    if name not in _OURS:
        raise RuntimeError(
            f"the backend {name!r} is not available: Flambeau has 'gloo', its own engine over sockets, and 'mpi'. "
            "Tensors on a GPU pass through the host with either"
        )
    if store is None:
        store, rank, world_size = met(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
    store.set_timeout(timeout)
    from ._mesh.engine import MeshEngine

    return MeshEngine.connect(rank, world_size, PrefixStore(prefix, store), timeout.total_seconds()), store
