"""The agent of one machine."""

from __future__ import annotations

import os
import signal
import string
import time
from typing import Any

from ...multiprocessing import LogsSpecs, PContext, start_processes
from .api import RunResult, SimpleElasticAgent, WorkerGroup, WorkerSpec, WorkerState
from .health_check_server import HealthCheckServer, create_healthcheck_server

__all__ = [
    "TORCHELASTIC_ENABLE_FILE_TIMER", "TORCHELASTIC_HEALTH_CHECK_PORT", "TORCHELASTIC_TIMER_FILE",
    "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", "LocalElasticAgent",
]  # fmt: skip

TORCHELASTIC_ENABLE_FILE_TIMER = "TORCHELASTIC_ENABLE_FILE_TIMER"
TORCHELASTIC_HEALTH_CHECK_PORT = "TORCHELASTIC_HEALTH_CHECK_PORT"
TORCHELASTIC_TIMER_FILE = "TORCHELASTIC_TIMER_FILE"
TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT = "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT"


class LocalElasticAgent(SimpleElasticAgent):
    """Starts the processes of one machine together, and ends them together."""

    def __init__(
        self,
        spec: WorkerSpec,
        logs_specs: LogsSpecs,
        start_method: str = "spawn",
        exit_barrier_timeout: float = 300,
        log_line_prefix_template: str | None = None,
        shutdown_timeout: int = 30,
        health_check_server: HealthCheckServer | None = None,
        uninterruptible_state_timeout: float | None = None,
    ) -> None:
        super().__init__(spec, exit_barrier_timeout, shutdown_timeout)
        if os.environ.get(TORCHELASTIC_ENABLE_FILE_TIMER) == "1":
            raise NotImplementedError("timers by files are not built: see torch.distributed.elastic.timer")
        if uninterruptible_state_timeout is not None:
            raise NotImplementedError("processes that the system does not let go are not looked for")
        self._start_method = start_method
        self._pcontext: PContext | None = None
        self._logs_specs = logs_specs
        self._log_line_prefix_template = log_line_prefix_template
        self._health_check_server = health_check_server

    def _setup_healthcheck(self) -> None:
        port = os.environ.get(TORCHELASTIC_HEALTH_CHECK_PORT)
        if port is not None and self._health_check_server is None:
            self._health_check_server = create_healthcheck_server(lambda: int(time.time()), int(port), 60)
            self._health_check_server.start()

    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        spec = worker_group.spec
        restarts = spec.max_restarts - self._remaining_restarts
        args: dict[int, tuple[Any, ...]] = {}
        envs: dict[int, dict[str, str]] = {}
        prefixes: dict[int, str] | None = {} if self._log_line_prefix_template else None
        for worker in worker_group.workers:
            rank = worker.local_rank
            envs[rank] = {
                "LOCAL_RANK": str(rank),
                "RANK": str(worker.global_rank),
                "GROUP_RANK": str(worker_group.group_rank),
                "ROLE_RANK": str(worker.role_rank),
                "ROLE_NAME": spec.role,
                "LOCAL_WORLD_SIZE": str(spec.local_world_size),
                "WORLD_SIZE": str(worker.world_size),
                "GROUP_WORLD_SIZE": str(worker_group.group_world_size),
                "ROLE_WORLD_SIZE": str(worker.role_world_size),
                "MASTER_ADDR": str(worker_group.master_addr),
                "MASTER_PORT": str(worker_group.master_port),
                "TORCHELASTIC_RESTART_COUNT": str(restarts),
                "TORCHELASTIC_MAX_RESTARTS": str(spec.max_restarts),
                "TORCHELASTIC_RUN_ID": spec.rdzv_handler.get_run_id(),
                "TORCHELASTIC_USE_AGENT_STORE": str(spec.rdzv_handler.use_agent_store),
            }
            if "OMP_NUM_THREADS" in os.environ:
                envs[rank]["OMP_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]
            if prefixes is not None:
                values = {"role_name": spec.role, "rank": worker.global_rank, "local_rank": rank}
                prefixes[rank] = string.Template(str(self._log_line_prefix_template)).safe_substitute(**values)
            local = str(rank)
            args[rank] = tuple(each.replace("${local_rank}", local) if isinstance(each, str) else each for each in spec.args)  # noqa: E501  # fmt: skip
        self._setup_healthcheck()
        if spec.entrypoint is None:
            raise AssertionError("Entry point must be set")
        self._pcontext = start_processes(
            spec.role, spec.entrypoint, args, envs, self._logs_specs, prefixes, self._start_method, spec.numa_options,
            spec.duplicate_stdout_filters, spec.duplicate_stderr_filters,
        )  # fmt: skip
        return dict(self._pcontext.pids())

    def _stop_workers(self, worker_group: WorkerGroup) -> None:
        if self._pcontext is not None:
            self._pcontext.close(timeout=self._shutdown_timeout)

    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM, timeout: int = 30) -> None:
        if self._health_check_server is not None:
            self._health_check_server.stop()
            self._health_check_server = None
        if self._pcontext is not None:
            self._pcontext.close(death_sig, timeout)

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        if self._pcontext is None:
            raise AssertionError("the processes have not been started")
        result = self._pcontext.wait(0)
        if result is None:
            return RunResult(WorkerState.HEALTHY)
        workers = worker_group.workers
        if result.is_failed():
            failures = {workers[rank].global_rank: failure for rank, failure in result.failures.items()}
            return RunResult(WorkerState.FAILED, failures=failures)
        values = {workers[rank].global_rank: value for rank, value in result.return_values.items()}
        return RunResult(WorkerState.SUCCEEDED, return_values=values)
