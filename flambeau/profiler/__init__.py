"""Where time and memory go, under the names of `torch.profiler`: marks and schedules; profiles are not built yet."""

from __future__ import annotations

from .._core.absent import Table
from ._schedule import ProfilerAction, ProfilerActivity, record_function, schedule, supported_activities

__all__ = ["ProfilerAction", "ProfilerActivity", "record_function", "schedule", "supported_activities"]

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "profiles are not built yet",
        functions="tensorboard_trace_handler",
        classes="profile ExecutionTraceObserver DeviceType",
    )
    .returning(lambda: False, functions="kineto_available")
    .submodules("itt profiler")
    .parts()
)
