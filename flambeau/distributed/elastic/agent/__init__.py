"""Agents: what starts the processes of one machine, and starts them again."""

from __future__ import annotations

from ...._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).submodules("server").parts()
