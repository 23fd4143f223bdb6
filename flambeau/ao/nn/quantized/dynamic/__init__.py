"""Layers with quantized weights, for floats that are quantized as they come."""

from __future__ import annotations

from ....._core.names.absent import Table
from .modules import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, Linear

__all__ = [
    "GRU",
    "LSTM",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "GRUCell",
    "LSTMCell",
    "Linear",
    "RNNCell",
]  # fmt: skip
__getattr__, __dir__ = (
    Table(__name__).elsewhere("GRU GRUCell LSTM LSTMCell RNNCell", "ao.nn.quantized.dynamic.modules.rnn").parts()
)
