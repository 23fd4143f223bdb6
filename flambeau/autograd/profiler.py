"""Profiles of ops, under the names of `torch.autograd.profiler`: not built yet; marks for them are."""

from __future__ import annotations

from .._core.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "profiles are not built yet",
        functions="load_nvprof parse_nvprof_trace",
        classes="EnforceUnique KinetoStepTracker emit_itt emit_nvtx profile",
    )
    .elsewhere("record_function", "profiler._schedule")
    .elsewhere("EventList FunctionEvent MemRecordsAcc", "autograd.profiler_util")
    .parts()
)
