"""Agents that start the processes of one machine, watch them, and start them again when one fails."""

from __future__ import annotations

from .api import ElasticAgent, RunResult, SimpleElasticAgent, Worker, WorkerGroup, WorkerSpec, WorkerState
from .local_elastic_agent import TORCHELASTIC_ENABLE_FILE_TIMER, TORCHELASTIC_TIMER_FILE

__all__ = [
    "TORCHELASTIC_ENABLE_FILE_TIMER", "TORCHELASTIC_TIMER_FILE", "ElasticAgent", "RunResult", "SimpleElasticAgent",
    "Worker", "WorkerGroup", "WorkerSpec", "WorkerState",
]  # fmt: skip
