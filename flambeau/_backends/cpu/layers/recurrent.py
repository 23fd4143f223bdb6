"""Recurrent layers: the steps between the matrix products, compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...._codegen.products.recurrent import gru_step, gru_step_backward, lstm_step, lstm_step_backward
from ...._core.backend import undispatched
from ...tiers import library
from ..runtime.dtypes import FULL_NAMES

_dot = undispatched(np.dot)
_WORTHWHILE = 100**3
"""From so many multiplications on the vendor's library is quicker than NumPy's."""


def serves(dtype: np.dtype[Any], sizes: Sequence[int]) -> bool:
    """Whether there are kernels for such a sequence: all of its steps have the same samples, at least one."""
    return dtype in FULL_NAMES and sizes[0] == sizes[-1] and sizes[0] > 0


def _ordered(rows: Any, steps: int, reverse: bool) -> list[Any]:
    """The rows of each step, in the order in which the network sees them."""
    if steps == 1:
        return [rows]
    blocks = list(rows.reshape(steps, len(rows) // steps, rows.shape[-1]))
    return blocks[::-1] if reverse else blocks


def _multiplier(rows: int, right: Any) -> Callable[[Any, Any, Any], object]:
    """What writes the product of a step's rows with the weights: (left, weights, out). All steps have the same ones."""
    kernels = library() if rows * right.size >= _WORTHWHILE and right.dtype == np.float32 else None
    found = None if kernels is None else kernels.multiplier(rows, right)
    return _dot if found is None else lambda left, _, out: found(left, out)


def lstm_forward(
    gates: Any, hidden: Any, cell: Any, w_hh: Any, steps: int, reverse: bool
) -> tuple[Any, Any, Any, Any, Any]:
    """All steps of a layer, from the input's part of the gates, which they replace: output, cells, their tanh,
    the last state and cell.
    """
    dtype, (count, width) = gates.dtype, (len(gates), cell.shape[-1])
    output, cells, shown = [np.empty((count, width), dtype) for _ in range(3)]
    product = np.empty((count // steps, 4 * width), dtype)
    weights = w_hh.T
    multiply, step = _multiplier(len(product), weights), lstm_step(FULL_NAMES[dtype])
    hidden, cell = np.ascontiguousarray(hidden), np.ascontiguousarray(cell)
    for gate, this, show, state in zip(
        *[_ordered(each, steps, reverse) for each in (gates, cells, shown, output)], strict=True
    ):
        multiply(hidden, weights, product)
        step(gate, product, this, show, state, cell)
        hidden, cell = state, this
    return output, cells, shown, hidden, cell


def lstm_backward(
    of_output: Any,
    of_hidden: Any,
    of_cell: Any,
    gates: Any,
    before: Any,
    shown: Any,
    w_hh: Any,
    steps: int,
    reverse: bool,
) -> tuple[Any, Any, Any]:
    """The gradients of all gates, of the first state and of the first cell. `before` has the cell before each step."""
    dtype = gates.dtype
    of_gates = np.empty(gates.shape, dtype)
    of_hidden, of_cell = np.array(of_hidden, order="C"), np.array(of_cell, order="C")
    multiply, step = _multiplier(len(of_hidden), w_hh), lstm_step_backward(FULL_NAMES[dtype], of_output is not None)
    given = [
        _ordered(np.ascontiguousarray(each), steps, not reverse)
        for each in (of_gates, gates, before, shown, shown if of_output is None else of_output)
    ]
    for of_gate, gate, old, show, of_step in zip(*given, strict=True):
        step(of_gate, of_cell, gate, old, of_step, show, of_hidden)
        multiply(of_gate, w_hh, of_hidden)
    return of_gates, of_hidden, of_cell


def gru_forward(products: Any, hidden: Any, w_hh: Any, b_hh: Any, steps: int, reverse: bool) -> tuple[Any, Any, Any]:
    """All steps of a layer, from the input's part of the gates: the states, the gates, the last state."""
    dtype, (count, width) = products.dtype, (len(products), hidden.shape[-1])
    states, gates = np.empty((count, width), dtype), np.empty((count, 4 * width), dtype)
    product = np.empty((count // steps, 3 * width), dtype)
    weights = w_hh.T
    multiply, step = _multiplier(len(product), weights), gru_step(FULL_NAMES[dtype])
    hidden = np.ascontiguousarray(hidden)
    for given, gate, state in zip(*[_ordered(each, steps, reverse) for each in (products, gates, states)], strict=True):
        multiply(hidden, weights, product)
        if b_hh is not None:
            product += b_hh
        step(gate, given, product, state, hidden)
        hidden = state
    return states, gates, hidden


def gru_backward(
    of_output: Any, of_hidden: Any, gates: Any, before: Any, w_hh: Any, steps: int, reverse: bool
) -> tuple[Any, Any, Any]:
    """The gradients of the products with the state, of those with the input, and of the first state."""
    dtype, (count, width) = gates.dtype, before.shape
    of_states, of_inputs = np.empty((count, 3 * width), dtype), np.empty((count, 3 * width), dtype)
    of_hidden = np.array(of_hidden, order="C")
    kept = np.empty(of_hidden.shape, dtype)
    multiply, step = _multiplier(len(of_hidden), w_hh), gru_step_backward(FULL_NAMES[dtype], of_output is not None)
    given = [
        _ordered(np.ascontiguousarray(each), steps, not reverse)
        for each in (of_states, of_inputs, gates, before, before if of_output is None else of_output)
    ]
    for of_state, of_input, gate, old, of_step in zip(*given, strict=True):
        step(of_state, of_input, kept, gate, of_step, old, of_hidden)
        multiply(of_state, w_hh, of_hidden)
        of_hidden += kept
    return of_states, of_inputs, of_hidden
