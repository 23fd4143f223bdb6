"""An agent: meets the others, starts processes, watches them, and starts them again when one fails."""

from __future__ import annotations

import abc
import json
import logging
import signal
import time
import traceback
from contextlib import contextmanager
from typing import Any

from ... import events
from ...events import Event, EventSource
from ...metrics import prof, put_metric
from ...multiprocessing import SignalException
from ...rendezvous import RendezvousGracefulExitError
from ...utils.store import barrier
from .workers import RunResult, Worker, WorkerGroup, WorkerSpec, WorkerState, host_name

__all__ = ["ElasticAgent", "RunResult", "SimpleElasticAgent", "Worker", "WorkerGroup", "WorkerSpec", "WorkerState"]

_logger = logging.getLogger(__name__)
_BARRIER = "torchelastic/agent/terminal_state"


class ElasticAgent(abc.ABC):
    """What runs the processes of one machine."""

    @abc.abstractmethod
    def run(self, role: str = "default") -> RunResult:
        """Run them to their end, again where they fail, as often as is allowed."""

    @abc.abstractmethod
    def get_worker_group(self, role: str = "default") -> WorkerGroup:
        """The group of processes that the agent looks after."""


class SimpleElasticAgent(ElasticAgent):
    """An agent for processes of one kind; a subclass says how they are started, watched and ended."""

    def __init__(self, spec: WorkerSpec, exit_barrier_timeout: float = 300, shutdown_timeout: int = 30) -> None:
        self._worker_group = WorkerGroup(spec)
        self._remaining_restarts = spec.max_restarts
        self._exit_barrier_timeout = exit_barrier_timeout
        self._shutdown_timeout = shutdown_timeout
        self._store: Any = None
        self._total_execution_time = 0

    def get_worker_group(self, role: str = "default") -> WorkerGroup:
        """The group of processes that the agent looks after."""
        return self._worker_group

    # ----- what subclasses say -----------------------------------------------------------------------------------

    @abc.abstractmethod
    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        """Start the processes; what each is called, by local rank."""

    @abc.abstractmethod
    def _stop_workers(self, worker_group: WorkerGroup) -> None:
        """End the processes of a group."""

    @abc.abstractmethod
    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        """How the processes are."""

    @abc.abstractmethod
    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM, timeout: int = 30) -> None:
        """End all that this agent has begun."""

    # ----- meeting -------------------------------------------------------------------------------------------------

    @prof
    def _rendezvous(self, worker_group: WorkerGroup) -> None:
        """Meet the other agents, and give the processes their numbers."""
        spec = worker_group.spec
        met = spec.rdzv_handler.next_rendezvous()
        self._store = met.store
        worker_group.store, worker_group.group_rank, worker_group.group_world_size = met.store, met.rank, met.world_size
        worker_group.workers = self._assign_worker_ranks(met.store, met.rank, met.world_size, spec)
        place = met.bootstrap_store_info
        worker_group.master_addr = spec.master_addr or (place.master_addr if place is not None else None)
        worker_group.master_port = spec.master_port or (place.master_port if place is not None else None)

    def _assign_worker_ranks(
        self, store: Any, group_rank: int, group_world_size: int, spec: WorkerSpec
    ) -> list[Worker]:
        """The numbers of this agent's processes: agents tell each other their roles and how many they start."""
        own = json.dumps({"role": spec.role, "number": spec.local_world_size})
        round_ = store.add("torchelastic/assigned/" + str(group_rank), 1)
        store.set(f"torchelastic/role_info/{round_}/{group_rank}", own.encode())
        told = [
            json.loads(store.get(f"torchelastic/role_info/{round_}/{each}").decode())
            for each in range(group_world_size)
        ]
        first = sum(each["number"] for each in told[:group_rank])
        first_of_role = sum(each["number"] for each in told[:group_rank] if each["role"] == spec.role)
        total = sum(each["number"] for each in told)
        total_of_role = sum(each["number"] for each in told if each["role"] == spec.role)
        return [
            Worker(rank, first + rank, first_of_role + rank, total, total_of_role)
            for rank in range(spec.local_world_size)
        ]

    @prof
    def _initialize_workers(self, worker_group: WorkerGroup) -> None:
        """Meet, and start the processes."""
        self._rendezvous(worker_group)
        for rank, worker_id in self._start_workers(worker_group).items():
            worker_group.workers[rank].id = worker_id
        worker_group.state = WorkerState.HEALTHY

    @prof
    def _restart_workers(self, worker_group: WorkerGroup) -> None:
        """End the processes, and start them again."""
        self._stop_workers(worker_group)
        worker_group.state = WorkerState.STOPPED
        self._initialize_workers(worker_group)

    # ----- running ---------------------------------------------------------------------------------------------------

    @prof
    def run(self, role: str = "default") -> RunResult:
        """Run the processes to their end, again where they fail, as often as is allowed."""
        began = time.monotonic()
        ended_by_signal = False
        try:
            result = self._invoke_run(role)
            self._total_execution_time = int(time.monotonic() - began)
            self._record_metrics(result)
            return result
        except RendezvousGracefulExitError as error:
            _logger.info("Rendezvous gracefully exited: %s", error)
            return RunResult(state=WorkerState.SUCCEEDED)
        except SignalException as error:
            ended_by_signal = True
            self._shutdown(error.sigval)
            raise
        finally:
            if not ended_by_signal:
                self._shutdown(timeout=self._shutdown_timeout)
            self._total_execution_time = int(time.monotonic() - began)

    def _invoke_run(self, role: str = "default") -> RunResult:
        group = self._worker_group
        spec = group.spec
        self._initialize_workers(group)
        while True:
            time.sleep(spec.monitor_interval)
            result = self._monitor_workers(group)
            group.state = result.state
            put_metric(f"workers.{role}.remaining_restarts", self._remaining_restarts)
            put_metric(f"workers.{role}.{result.state.name.lower()}", 1)
            if result.state is WorkerState.SUCCEEDED:
                self._exit_barrier()
                return result
            if result.state in (WorkerState.UNHEALTHY, WorkerState.FAILED):
                if not self._remaining_restarts:
                    self._stop_workers(group)
                    group.state = WorkerState.FAILED
                    return RunResult(WorkerState.FAILED, failures=result.failures)
                self._remaining_restarts -= 1
                self._restart_workers(group)
            elif result.state is WorkerState.HEALTHY:
                if spec.rdzv_handler.num_nodes_waiting() > 0:  # others have come: begin anew, with them
                    self._restart_workers(group)
            else:
                raise Exception(f"[{role}] Worker group in {result.state.name} state")

    def _exit_barrier(self) -> None:
        """Wait for the other agents: one that ends early looks like one that was lost."""
        group = self._worker_group
        try:
            barrier(self._store, int(group.group_world_size or 1), _BARRIER, self._exit_barrier_timeout)
        except SignalException:
            raise
        except Exception:
            _logger.exception("other agents have not ended in %s seconds", self._exit_barrier_timeout)

    # ----- what happened ---------------------------------------------------------------------------------------------

    def _construct_event(self, state: str, source: EventSource, raw_error: str | None = None) -> Event:
        group, spec = self._worker_group, self._worker_group.spec
        metadata: dict[str, Any] = {
            "group_world_size": group.group_world_size, "entry_point": spec.get_entrypoint_name(),
            "group_rank": group.group_rank, "role": spec.role, "hostname": host_name(), "state": state,
            "total_run_time": self._total_execution_time, "rdzv_backend": spec.rdzv_handler.get_backend(),
            "run_id": spec.rdzv_handler.get_run_id(), "max_restarts": spec.max_restarts, "raw_error": raw_error,
        }  # fmt: skip
        return Event(f"torchelastic.worker.status.{state}", source=source, metadata=metadata)

    def get_event_failed(self) -> Event:
        """That the agent has failed, with the error that is being handled."""
        return self._construct_event("FAILED", EventSource.AGENT, traceback.format_exc())

    def get_event_succeeded(self) -> Event:
        """That the agent has succeeded."""
        return self._construct_event("SUCCEEDED", EventSource.AGENT)

    @contextmanager
    def record_duration(self, state: str) -> Any:
        """Note how long a block takes."""
        began = time.perf_counter()
        try:
            yield
        finally:
            event = self._construct_event(state, EventSource.AGENT)
            event.metadata["duration_ms"] = (time.perf_counter() - began) * 1000
            events.record(event, self._worker_group.spec.event_log_handler)

    def _record_metrics(self, group_results: RunResult) -> None:
        spec = self._worker_group.spec
        restarted = self._remaining_restarts != spec.max_restarts
        failed = group_results.is_failed()
        put_metric(f"workers.{spec.role}.run_total", 1)
        for name, happened in (
            ("run_success_with_retries", not failed and restarted),
            ("run_success_no_retries", not failed and not restarted),
            ("run_failed_with_retries", failed and restarted),
            ("run_failed_no_retries", failed and not restarted),
        ):
            put_metric(f"workers.{spec.role}.{name}", int(happened))
