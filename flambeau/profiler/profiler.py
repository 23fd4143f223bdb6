"""`torch.profiler.profiler`."""

from __future__ import annotations

from .._core.absent import Table
from ._schedule import ProfilerAction, schedule, supported_activities

__all__ = ["ProfilerAction", "schedule", "supported_activities"]

__getattr__, __dir__ = (
    Table(__name__).elsewhere("ExecutionTraceObserver profile tensorboard_trace_handler", "profiler").parts()
)
