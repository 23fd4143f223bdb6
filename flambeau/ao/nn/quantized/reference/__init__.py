"""Modules that compute with floats as quantized ones will."""

from __future__ import annotations

from ....._core.names.absent import Table
from .modules import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Embedding,
    EmbeddingBag,
    Linear,
)

__all__ = [
    "GRU",
    "LSTM",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Embedding",
    "EmbeddingBag",
    "GRUCell",
    "LSTMCell",
    "Linear",
    "RNNCell",
]  # fmt: skip
__getattr__, __dir__ = (
    Table(__name__).elsewhere("GRU GRUCell LSTM LSTMCell RNNCell", "ao.nn.quantized.reference.modules.rnn").parts()
)
