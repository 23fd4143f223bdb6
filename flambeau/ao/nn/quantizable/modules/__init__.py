"""Layers of parts that can be quantized: not built yet."""

from __future__ import annotations

from ....._core.names.absent import Table

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]
__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("LSTM LSTMCell", "ao.nn.quantizable.modules.rnn")
    .elsewhere("MultiheadAttention", "ao.nn.quantizable.modules.activation")
    .parts()
)
