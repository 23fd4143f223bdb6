"""Where time and memory go, under the names of `torch.profiler`."""

from __future__ import annotations

from .._core.names.absent import Table
from ._schedule import ProfilerAction, ProfilerActivity, record_function, schedule, supported_activities

__all__ = ["ProfilerAction", "ProfilerActivity", "record_function", "schedule", "supported_activities"]

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("DeviceType", "autograd.profiler_util")
    .elsewhere("ExecutionTraceObserver", "profiler._execution_trace")
    .elsewhere("profile tensorboard_trace_handler", "profiler.profiler")
    .elsewhere("kineto_available", "profiler._marks")
    .submodules("itt profiler")
    .parts()
)
