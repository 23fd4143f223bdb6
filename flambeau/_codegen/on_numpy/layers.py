"""Steps of recurrent layers, and attention, run by NumPy: see `products/recurrent.py` and `products/attention.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..build import Value
from ..functions import log
from ..functions.exponential import exp_of_difference
from ..products import recurrent
from ..products.attention import KEYS, KEYS_OF_HALF, QUERIES
from ..types import SCALARS, Scalar
from .builder import Evaluator
from .fused import fma
from .products import chained
from .sums import folded, largest

Array = Any


def _over_rows(gates: tuple[int, ...], body: Callable[..., None], dtype: str) -> Callable[..., Array]:
    """Run `body` on whole arrays: rows of as many gates as `gates` says."""
    scalar = SCALARS[dtype]

    def run(*arrays: Array) -> Array:
        b = Evaluator()
        rows, width = arrays[-1].shape
        views = [each.reshape(rows, count, width) for each, count in zip(arrays, gates, strict=True)]

        def read(number: int, gate: int = 0) -> Value:
            return b.load_from(views[number][:, gate].copy(), scalar)

        def write(number: int, gate: int, value: Value) -> None:
            views[number][:, gate] = value.ir.array

        with np.errstate(all="ignore"):
            body(b, read, write)
        return arrays[0]

    return run


def lstm_step(dtype: str) -> Callable[..., Array]:
    """(gates, product, cells, shown, output, before)."""
    return _over_rows(recurrent.LSTM_STEP, recurrent.lstm_step_of_element, dtype)


def lstm_step_backward(dtype: str, with_output: bool) -> Callable[..., Array]:
    """(of_products, of_cell, gates, before, of_output, shown, of_hidden)."""
    body = partial(recurrent.lstm_step_backward_of_element, with_output=with_output)
    return _over_rows(recurrent.LSTM_STEP_BACKWARD, body, dtype)


def gru_step(dtype: str) -> Callable[..., Array]:
    """(gates, from_input, from_state, output, before)."""
    return _over_rows(recurrent.GRU_STEP, recurrent.gru_step_of_element, dtype)


def gru_step_backward(dtype: str, with_output: bool) -> Callable[..., Array]:
    """(of_state, of_input, kept, gates, of_output, before, of_hidden)."""
    body = partial(recurrent.gru_step_backward_of_element, with_output=with_output)
    return _over_rows(recurrent.GRU_STEP_BACKWARD, body, dtype)


# ----- attention ------------------------------------------------------------------------------------------------------


def _exponentials(array: Array, scalar: Scalar) -> Array:
    b = Evaluator()
    return np.asarray(exp_of_difference(b, b.given(array, scalar.compute)).ir.array)


def _hidden(scores: Array, first: int, start: int) -> Array:
    """Scores (..., keys, queries) without those of keys that are later than the query."""
    keys, queries = np.arange(scores.shape[-2]) + start, np.arange(scores.shape[-1]) + first
    return np.where(queries >= keys[:, None], scores, scores.dtype.type("-inf"))


def attention_forward(dtype: str, causal: bool, masked: bool, half: str) -> Callable[..., Array]:
    """(output, logsumexp, query, key, value, mask, scale)."""
    scalar = SCALARS[dtype]
    together = KEYS_OF_HALF if half else KEYS

    def run(output: Array, sums: Array, query: Array, key: Array, value: Array, mask: Array, scale: float) -> Array:
        rows, keys, kind = query.shape[2], key.shape[2], query.dtype
        with np.errstate(all="ignore"):
            for first in range(0, rows, QUERIES):
                block = slice(first, first + QUERIES)
                turned = (query[:, :, block] * kind.type(scale)).swapaxes(-1, -2)
                shape = *query.shape[:2], 1, turned.shape[-1]
                top, total = np.full(shape, -np.inf, kind), np.zeros(shape, kind)
                gathered = np.zeros((*shape[:2], shape[-1], value.shape[-1]), kind)
                limit = min(keys, first + QUERIES) if causal else keys
                for start in range(0, limit, together):
                    part = slice(start, min(start + together, limit))
                    scores = chained(key[:, :, part], turned)
                    if masked:
                        scores = scores + mask[:, :, block, part].swapaxes(-1, -2)
                    if causal:
                        scores = _hidden(scores, first, start)
                    before, top = top, largest(np.concatenate([top, scores], -2), -2)
                    safe = np.where(top == -np.inf, kind.type(0), top)
                    factor = _exponentials(before - safe, scalar)
                    weights = _exponentials(scores - safe, scalar)
                    total = np.add.accumulate(np.concatenate([total * factor, weights], -2), -2)[:, :, -1:]
                    if half:
                        b = Evaluator()
                        packed = b.packed(b.given(weights, scalar.compute), SCALARS[half])
                        weights = np.asarray(b.unpacked(packed, SCALARS[half]).ir.array)
                    gathered = gathered * factor.swapaxes(-1, -2)
                    gathered = chained(weights.swapaxes(-1, -2), value[:, :, part]) + gathered
                inverse = np.where(total == 0, kind.type(0), kind.type(1) / total).swapaxes(-1, -2)
                output[:, :, block] = gathered * inverse
                b = Evaluator()
                found = top + log(b, b.given(total, scalar.compute)).ir.array
                sums.reshape(*shape[:2], rows)[:, :, block] = found[:, :, 0]
        return output

    return run


def _row_sums(one: Array, two: Array) -> Array:
    """The inner products of rows."""
    lanes = 32 // one.dtype.itemsize
    width = one.shape[-1]
    whole = width // lanes * lanes
    wide, single = np.zeros((*one.shape[:-1], lanes), one.dtype), np.zeros(one.shape[:-1], one.dtype)
    for at in range(0, whole, lanes):
        wide = fma(one[..., at : at + lanes], two[..., at : at + lanes], wide)
    for at in range(whole, width):
        single = fma(one[..., at], two[..., at], single)
    return folded(wide) + single


def attention_backward(dtype: str, causal: bool, masked: bool) -> Callable[..., Array]:
    """(of_query, of_key, of_value, query, key, value, output, grad, mask, logsumexp, scale)."""
    scalar = SCALARS[dtype]

    def run(*arguments: Any) -> Array:
        of_query, of_key, of_value, query, key, value, output, grad, mask, logsumexp, scale = arguments
        rows, keys, kind = query.shape[2], key.shape[2], query.dtype
        scale = kind.type(scale)
        logs = logsumexp.reshape(query.shape[:3])
        with np.errstate(all="ignore"):
            for done, first in enumerate(reversed(range(0, rows, QUERIES))):
                block = slice(first, first + QUERIES)
                turned, coming = (query[:, :, block] * scale).swapaxes(-1, -2), grad[:, :, block]
                row_sums = _row_sums(coming, output[:, :, block])[:, :, None]
                taken = logs[:, :, block][:, :, None]
                taken = np.where(taken == -np.inf, kind.type(0), taken)
                limit = min(keys, first + QUERIES) if causal else keys
                for start in range(0, limit, KEYS):
                    part = slice(start, min(start + KEYS, limit))
                    scores = chained(key[:, :, part], turned)
                    slopes = chained(value[:, :, part], coming.swapaxes(-1, -2))
                    if masked:
                        scores = scores + mask[:, :, block, part].swapaxes(-1, -2)
                    if causal:
                        scores = _hidden(scores, first, start)
                    weights = _exponentials(scores - taken, scalar)
                    of_scores = weights * (slopes - row_sums) * scale
                    for into, left, right, at, add in (
                        (of_value, weights, coming, part, done),
                        (of_key, of_scores, query[:, :, block], part, done),
                        (of_query, of_scores.swapaxes(-1, -2), key[:, :, part], block, start),
                    ):
                        found = chained(left, right)
                        into[:, :, at] = found + into[:, :, at] if add else found
        return of_query

    return run


__all__ = [
    "attention_backward",
    "attention_forward",
    "gru_step",
    "gru_step_backward",
    "lstm_step",
    "lstm_step_backward",
]
