"""Launching of processes from a program, under the names of `torch.distributed.launcher`."""

from __future__ import annotations

from .api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
