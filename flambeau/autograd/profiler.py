"""Profiles of ops, under the names of `torch.autograd.profiler`."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "files of NVIDIA's older profiler, which it has withdrawn, are not read",
        functions="load_nvprof parse_nvprof_trace",
    )
    .elsewhere("emit_itt emit_nvtx kineto_available", "profiler._marks")
    .elsewhere("EnforceUnique KinetoStepTracker", "profiler._counting")
    .elsewhere("profile", "profiler._profile")
    .elsewhere("record_function", "profiler._schedule")
    .elsewhere("EventList FunctionEvent FunctionEventAvg MemRecordsAcc", "autograd.profiler_util")
    .parts()
)
