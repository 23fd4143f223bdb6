"""Layers of parts that can be quantized."""

from __future__ import annotations

from .modules import LSTM, LSTMCell, MultiheadAttention

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]
