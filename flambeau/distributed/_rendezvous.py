"""How processes meet: by variables of the environment, at an address, or in a file.

`env://` reads `MASTER_ADDR`, `MASTER_PORT`, `RANK` and `WORLD_SIZE`, which launchers set; where they are missing, what
`mpiexec` (Open MPI, MPICH, Intel MPI) or Slurm say serves in their place.
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, unquote, urlparse

from .constants import default_pg_timeout
from .stores import FileStore, PrefixStore, Store
from .tcp_store import TCPStore

__all__ = ["register_rendezvous_handler", "rendezvous"]

Met = tuple[Store, int, int]
"""A store, the rank of this process, and the number of processes."""
_handlers: dict[str, Callable[..., Iterator[Met]]] = {}
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
_PORTS_FROM, _PORTS = 20000, 20000


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[Met]]) -> None:
    """Let URLs of a scheme be understood by a function, which yields a store, a rank and a number of processes.

    Args:
        scheme (str): how such URLs begin.
        handler (Callable): the function.

    Example:
        >>> def meet(url, rank=-1, world_size=-1, **kwargs):
        ...     yield dist.HashStore(), 0, 1
        >>> dist.register_rendezvous_handler("docs", meet)
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[Met]:
    """The meeting that a URL describes.

    Args:
        url (str): the URL.
        rank (int): the number of this process; -1 takes it from the URL or the environment. Default: `-1`.
        world_size (int): the number of processes; -1 takes it from the URL or the environment. Default: `-1`.
        **kwargs: `timeout`.

    Returns:
        yields a store, the rank and the number of processes.

    Example:
        >>> import tempfile
        >>> store, rank, size = next(dist.rendezvous(f"file://{tempfile.mkdtemp()}/store?rank=0&world_size=1"))
        >>> rank, size
        (0, 1)
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    scheme = urlparse(url).scheme
    if scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {scheme}://")
    return _handlers[scheme](url, rank, world_size, **kwargs)


def met(meeting: Iterator[Met]) -> Met:
    """The first result of a meeting."""
    return next(iter(meeting))


def _query(url: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlparse(url).query).items()}


def _known(name: str, given: int, query: dict[str, str], variables: tuple[str, ...], url: str) -> int:
    """A rank or a number of processes: as given, in the URL, or in the environment."""
    if given >= 0:
        return given
    if name in query:
        return int(query[name])
    if urlparse(url).scheme == "env":
        for variable in variables:
            if variable in os.environ:
                return int(os.environ[variable])
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {variables[0]} "
            "expected, but not set"
        )
    raise ValueError(f"Error initializing torch.distributed using {url}: {name} parameter missing")


def _by_environment(url: str, rank: int, world_size: int, timeout: timedelta = default_pg_timeout) -> Iterator[Met]:
    query = _query(url)
    rank = _known("rank", rank, query, _RANKS, url)
    world_size = _known("world_size", world_size, query, _SIZES, url)
    address, port = _meeting_point(world_size)
    yield _tcp_store(address, port, rank, world_size, timeout), rank, world_size


def _meeting_point(world_size: int) -> tuple[str, int]:
    address, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    if address is None and "SLURM_JOB_NODELIST" in os.environ:
        address = _first_host(os.environ["SLURM_JOB_NODELIST"])
    if address is None and world_size == int(os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", "-1")):
        address = "127.0.0.1"  # mpiexec on one machine
    for name, value in (("MASTER_ADDR", address), ("MASTER_PORT", port or _port_of_job())):
        if value is None:
            raise ValueError(
                f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, "
                "but not set"
            )
    return str(address), int(port or _port_of_job() or 0)


def _port_of_job() -> str | None:
    """A port that all processes of a job compute alike."""
    job = next((os.environ[name] for name in ("SLURM_JOB_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_ID")
                if name in os.environ), None)  # fmt: skip
    return None if job is None else str(_PORTS_FROM + zlib.crc32(job.encode()) % _PORTS)


def started_by_mpi() -> bool:
    """Whether `mpiexec` started this process."""
    return any(name in os.environ for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"))


def _first_host(names: str) -> str:
    """The first of Slurm's host names: of 'node[07-12,20],other' it is node07."""
    found = re.match(r"([^,\[]+)(?:\[([^\],-]+))?", names)
    return names if found is None else found[1] + (found[2] or "")


def _tcp_store(address: str, port: int, rank: int, world_size: int, timeout: timedelta) -> Store:
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        served = TCPStore(address, port, world_size, False, timeout, wait_for_workers=False)
        return PrefixStore(f"/worker/attempt_{attempt}", served)
    return TCPStore(address, port, world_size, rank == 0, timeout, multi_tenant=True)


def _by_address(url: str, rank: int, world_size: int, timeout: timedelta = default_pg_timeout) -> Iterator[Met]:
    query, place = _query(url), urlparse(url)
    rank = _known("rank", rank, query, (), url)
    world_size = _known("world_size", world_size, query, (), url)
    if not place.port or place.hostname is None:
        raise ValueError(f"Error initializing torch.distributed using tcp:// rendezvous: port number missing in {url}")
    yield _tcp_store(place.hostname, place.port, rank, world_size, timeout), rank, world_size


def _by_file(url: str, rank: int, world_size: int, timeout: timedelta = default_pg_timeout) -> Iterator[Met]:
    query, place = _query(url), urlparse(url)
    if not place.path:
        raise ValueError("Error initializing torch.distributed using file:// rendezvous: path missing")
    rank = _known("rank", rank, query, (), url)
    world_size = _known("world_size", world_size, query, (), url)
    # On Windows file:///C:/folder is C:\\folder.
    if sys.platform == "win32":
        from urllib.request import url2pathname

        path = url2pathname(place.netloc + place.path)
    else:
        path = unquote(place.path)
    store = FileStore(path, world_size)
    store.set_timeout(timeout)
    yield store, rank, world_size


register_rendezvous_handler("env", _by_environment)
register_rendezvous_handler("tcp", _by_address)
register_rendezvous_handler("file", _by_file)
