"""Conversions of checkpoints of several processes: not built yet."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed is not built yet",
        functions="dcp_to_torch_save torch_save_to_dcp",
    )
    .parts()
)
