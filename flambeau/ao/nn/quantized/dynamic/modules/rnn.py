"""Recurrent layers with quantized weights: not built yet."""

from __future__ import annotations

from ......_core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "recurrent layers with quantized weights are not built yet",
        functions="apply_permutation pack_weight_bias",
        classes="GRU GRUCell LSTM LSTMCell PackedParameter RNNBase RNNCell RNNCellBase",
    )
    .parts()
)
