"""Launching a function, or a command, in several processes from a program."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..elastic import events
from ..elastic.agent.server.api import WorkerSpec
from ..elastic.agent.server.health_check_server import HealthCheckServer
from ..elastic.agent.server.local_elastic_agent import LocalElasticAgent
from ..elastic.multiprocessing import DefaultLogsSpecs, LogsSpecs, SignalException
from ..elastic.multiprocessing.errors import ChildFailedError
from ..elastic.rendezvous import RendezvousParameters
from ..elastic.rendezvous.registry import get_rendezvous_handler

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]

_logger = logging.getLogger(__name__)


@dataclass
class LaunchConfig:
    """How many agents meet and where, how many processes each starts, and how often again."""

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: LogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None

    def __post_init__(self) -> None:
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        elif "timeout" not in self.rdzv_configs:
            self.rdzv_configs["timeout"] = 900
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()


class elastic_launch:
    """What runs an entry point with given arguments: `elastic_launch(config, function)(arguments)`.

    The call returns the results by global rank. A failure that is not mended by starting again is a
    `ChildFailedError`.
    """

    def __init__(
        self,
        config: LaunchConfig,
        entrypoint: Callable[..., Any] | str | None,
        health_check_server: HealthCheckServer | None = None,
    ) -> None:
        self._config = config
        self._entrypoint = entrypoint
        self._health_check_server = health_check_server

    def __call__(self, *args: Any) -> dict[int, Any]:
        """Run the function on all processes, and return its results by rank."""
        return launch_agent(self._config, self._entrypoint, list(args), self._health_check_server)


def _fixed_place(params: RendezvousParameters) -> tuple[str | None, int | None]:
    """Where the store of the training is, if the meeting's own place says it."""
    if params.backend != "static" or not params.endpoint:
        return None, None
    host, _, port = params.endpoint.strip().rpartition(":")
    return host, int(port)


def launch_agent(
    config: LaunchConfig,
    entrypoint: Callable[..., Any] | str | None,
    args: list[Any],
    health_check_server: HealthCheckServer | None = None,
) -> dict[int, Any]:
    """Run an agent of this machine to its end."""
    run_id = config.run_id or str(uuid.uuid4().int)
    params = RendezvousParameters(
        config.rdzv_backend, config.rdzv_endpoint, run_id, config.min_nodes, config.max_nodes, config.local_addr,
        **config.rdzv_configs,
    )  # fmt: skip
    address, port = _fixed_place(params)
    spec = WorkerSpec(
        role=config.role, local_world_size=config.nproc_per_node, entrypoint=entrypoint, args=tuple(args),
        rdzv_handler=get_rendezvous_handler(params), max_restarts=config.max_restarts,
        monitor_interval=config.monitor_interval, master_addr=address, master_port=port,
        local_addr=config.local_addr, event_log_handler=config.event_log_handler, numa_options=config.numa_options,
        duplicate_stdout_filters=config.duplicate_stdout_filters,
        duplicate_stderr_filters=config.duplicate_stderr_filters, virtual_local_rank=config.virtual_local_rank,
    )  # fmt: skip
    agent = LocalElasticAgent(
        spec, config.logs_specs or DefaultLogsSpecs(), config.start_method,
        log_line_prefix_template=config.log_line_prefix_template, shutdown_timeout=config.shutdown_timeout or 30,
        health_check_server=health_check_server,
    )  # fmt: skip
    close_meeting = True
    try:
        result = agent.run()
        events.record(agent.get_event_succeeded(), config.event_log_handler)
        if result.is_failed():
            raise ChildFailedError(spec.get_entrypoint_name(), result.failures)
        values: dict[int, Any] = result.return_values
        return values
    except ChildFailedError:
        raise
    except SignalException:
        close_meeting = False  # others may go on without this machine
        events.record(agent.get_event_failed(), config.event_log_handler)
        raise
    except Exception:
        events.record(agent.get_event_failed(), config.event_log_handler)
        raise
    finally:
        if close_meeting:
            spec.rdzv_handler.shutdown()
