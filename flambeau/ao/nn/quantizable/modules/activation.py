"""Attention of parts that can be quantized: not built yet."""

from __future__ import annotations

from ....._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__).absent("attention of quantized tensors is not built yet", classes="MultiheadAttention").parts()
)
