"""The engine of the group of all processes: which one, and how the processes meet."""

from __future__ import annotations

import os
from datetime import timedelta

from .._core.process.platform import refuse_in_browser
from ._engines import Engine
from ._rendezvous import met, rendezvous
from .stores import HashStore, PrefixStore, Store

_OURS = ("gloo", "undefined", "")


def backend_for_cpu(backend: str | None) -> str:
    """The part of a backend's name that is about the CPU: 'gloo' in 'cpu:gloo,cuda:nccl', and in 'nccl'."""
    parts = _parts(backend)
    name = parts.get("cpu", next(iter(parts.values())))
    return "gloo" if name == "nccl" else name


def _parts(backend: str | None) -> dict[str, str]:
    """The names of backends by device; '' is a device where only one is named."""
    name = (backend or "").lower()
    if ":" not in name:
        return {"": name}
    return dict(part.split(":", 1) for part in name.split(",") if ":" in part)


def _has_nccl() -> bool:
    from ..cuda import is_available
    from ._nccl.library import library

    return is_available() and library() is not None


def check_nccl() -> None:
    """Say what is missing for 'nccl'."""
    from ..cuda import is_available
    from ._nccl.library import library

    if not is_available():
        raise RuntimeError("the backend 'nccl' is for GPUs, and there is none: use 'gloo'")
    if library() is None:
        raise RuntimeError(
            "the backend 'nccl' needs the library libnccl.so.2, which was not found: pip install nvidia-nccl-cu13"
        )


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
    if name != "fake":
        refuse_in_browser(
            "Sockets and other processes", "call init_process_group outside of it, or with backend='fake'"
        )
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
            f"the backend {name!r} is not available: Flambeau has 'gloo', its own engine over sockets and shared "
            "memory, 'nccl' for tensors on GPUs, and 'mpi'"
        )
    wants_gpu = "nccl" in _parts(backend).values()
    if wants_gpu:
        check_nccl()
    if store is None:
        store, rank, world_size = met(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
    store.set_timeout(timeout)
    from ._mesh.engine import MeshEngine

    host = MeshEngine.connect(rank, world_size, PrefixStore(prefix, store), timeout.total_seconds())
    if not wants_gpu and (backend or not _has_nccl()):
        return host, store
    from ._nccl.engine import NcclEngine
    from ._nccl.library import library

    found = library()
    assert found is not None
    return NcclEngine(host, found, 0), store
