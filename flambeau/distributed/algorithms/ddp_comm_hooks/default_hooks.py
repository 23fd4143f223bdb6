"""The usual exchange: not built yet."""

from __future__ import annotations

from ...._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed is not built yet",
        functions="allreduce_hook bf16_compress_hook fp16_compress_hook",
    )
    .parts()
)
