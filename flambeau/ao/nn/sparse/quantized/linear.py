"""Layers with sparse quantized weights: not built yet."""

from __future__ import annotations

from ....._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__).absent("sparse quantized weights are not built yet", classes="Linear LinearPackedParams").parts()
)
