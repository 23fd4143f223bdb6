"""Launching of processes from a program: not built, since `flambeau launch` starts programs, and these functions."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent("functions are not launched yet: `flambeau launch` starts programs", classes="LaunchConfig elastic_launch")
    .parts()
)
