"""Sizes of a tensor's parts: not built yet."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed is not built yet",
        functions="compute_local_shape_and_global_offset compute_local_shape compute_global_tensor_info",
    )
    .parts()
)
