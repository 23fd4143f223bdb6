"""Recurrent layers of quantized tensors: not built yet."""

from __future__ import annotations

from ....._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__).absent("recurrent layers of quantized tensors are not built yet", classes="LSTM").parts()
)
