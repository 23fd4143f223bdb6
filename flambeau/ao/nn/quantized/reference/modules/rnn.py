"""Recurrent layers that compute with floats as quantized ones will: not built yet."""

from __future__ import annotations

from ......_core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "recurrent layers with quantized weights are not built yet",
        functions="get_quantized_weight",
        classes="GRU GRUCell LSTM LSTMCell RNNBase RNNCell RNNCellBase",
    )
    .parts()
)
