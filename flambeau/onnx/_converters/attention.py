"""Scaled dot-product attention."""

from __future__ import annotations

import math

import numpy as np

from .._graph import Graph, Value
from ._table import Result, converter


@converter("attention")
def attention(
    g: Graph, call: Result, query: Value, key: Value, value: Value, dropout_p: float, is_causal: bool,
    attn_mask: Value | None, scale: float | None,
) -> list[Value]:  # fmt: skip
    """The result, and the logarithms of the sums, which nobody reads outside of a derivative."""
    return [g.op("MatMul", _weights(g, query, key, is_causal, attn_mask, scale), value)]


@converter("dropped_attention")
def dropped_attention(
    g: Graph, call: Result, query: Value, key: Value, value: Value, kept: Value, dropout_p: float, is_causal: bool,
    attn_mask: Value | None, scale: float | None,
) -> list[Value]:  # fmt: skip
    """Attention with the weights that are kept, scaled up for those that are not."""
    factors = g.op("Mul", g.cast(kept, query.dtype), 1 / (1 - dropout_p))
    weights = g.op("Mul", _weights(g, query, key, is_causal, attn_mask, scale), factors)
    return [g.op("MatMul", weights, value)]


def _weights(
    g: Graph, query: Value, key: Value, is_causal: bool, attn_mask: Value | None, scale: float | None
) -> Value:
    """How much of each value goes into each result."""
    width = int((query.shape or (1,))[-1])
    factor = 1 / math.sqrt(width) if scale is None else float(scale)
    turned = g.transpose(key, [0, 1, 3, 2])
    scores = g.op("MatMul", g.op("Mul", query, factor), turned)
    if attn_mask is not None:
        scores = g.op("Add", scores, attn_mask)
    if is_causal:
        rows, columns = g.count_up((query.shape or ())[2]), g.count_up((key.shape or ())[2])
        hidden = g.op("Greater", columns, g.unsqueeze(rows, 1), dtype=bool)
        scores = g.where(hidden, -math.inf, scores)
    weights = g.op("Softmax", scores, axis=-1)
    if attn_mask is not None:  # a row that sees nothing is zero
        weights = g.where(g.op("IsNaN", weights, dtype=bool), np.float32(0).item(), weights)
    return weights
