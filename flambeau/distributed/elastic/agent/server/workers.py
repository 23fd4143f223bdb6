"""What an agent knows of the processes that it starts."""

from __future__ import annotations

import enum
import socket
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...multiprocessing import ProcessFailure
from ...rendezvous import RendezvousHandler


class WorkerState(str, enum.Enum):
    """How the processes are."""

    UNKNOWN = "UNKNOWN"
    INIT = "INIT"
    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @staticmethod
    def is_running(state: WorkerState) -> bool:
        """Whether processes in this state are there."""
        return state in (WorkerState.HEALTHY, WorkerState.UNHEALTHY)


@dataclass
class WorkerSpec:
    """What is to be run, in how many processes, and how often again."""

    role: str
    local_world_size: int
    rdzv_handler: RendezvousHandler
    fn: Callable[..., Any] | None = None
    entrypoint: Callable[..., Any] | str | None = None
    args: tuple[Any, ...] = ()
    max_restarts: int = 3
    monitor_interval: float = 0.1
    master_port: int | None = None
    master_addr: str | None = None
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False

    def __post_init__(self) -> None:
        if self.local_world_size <= 0:
            raise AssertionError(f"local_world_size must be > 0, got {self.local_world_size}")
        if self.monitor_interval <= 0:
            raise AssertionError(f"monitor_interval must be > 0, got {self.monitor_interval}")
        if self.fn:
            warnings.warn("WorkerSpec.fn will be deprecated, please use WorkerSpec.entrypoint instead", DeprecationWarning, stacklevel=2)  # noqa: E501  # fmt: skip
            self.entrypoint = self.fn
        if not self.entrypoint:
            raise AssertionError("Entry point must be set")

    def get_entrypoint_name(self) -> str:
        """The name of the function or the command."""
        return str(getattr(self.entrypoint, "__qualname__", self.entrypoint))


class Worker:
    """One process: its number on this machine, among all, and among those of its role."""

    __slots__ = ("global_rank", "id", "local_rank", "role_rank", "role_world_size", "world_size")

    def __init__(
        self,
        local_rank: int,
        global_rank: int = -1,
        role_rank: int = -1,
        world_size: int = -1,
        role_world_size: int = -1,
    ) -> None:
        self.id: Any = None
        self.local_rank, self.global_rank, self.role_rank = local_rank, global_rank, role_rank
        self.world_size, self.role_world_size = world_size, role_world_size

    def __str__(self) -> str:
        return (
            f"local_rank={self.local_rank},global_rank={self.global_rank},role_rank={self.role_rank}"
            f",world_size={self.world_size},role_world_size={self.role_world_size}"
        )

    __repr__ = __str__


class WorkerGroup:
    """The processes of one agent."""

    __slots__ = ("group_rank", "group_world_size", "master_addr", "master_port", "spec", "state", "store", "workers")

    def __init__(self, spec: WorkerSpec) -> None:
        self.spec = spec
        self.workers = [Worker(local_rank=each) for each in range(spec.local_world_size)]
        self.store: Any = None
        self.group_rank: int | None = None
        self.group_world_size: int | None = None
        self.master_addr: str | None = None
        self.master_port: int | None = None
        self.state = WorkerState.INIT


@dataclass
class RunResult:
    """How the processes have ended, by global rank."""

    state: WorkerState
    return_values: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, ProcessFailure] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """Whether they have failed."""
        return self.state is WorkerState.FAILED


def host_name() -> str:
    """The full name of this machine."""
    return socket.getfqdn(socket.gethostname())
