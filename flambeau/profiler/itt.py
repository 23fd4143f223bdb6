"""Marks for Intel's profilers, under the names of `torch.profiler.itt`: this build has none."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .returning(lambda: False, functions="is_available")
    .raising(
        RuntimeError,
        "ITT functions not installed. Are you sure you have a ITT build? torch.profiler.itt.{name} needs one",
        functions="mark range range_pop range_push",
    )
    .parts()
)
