"""Recurrent layers: the steps between the matrix products, compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ...._codegen.products.recurrent import gru_step, gru_step_backward, lstm_step, lstm_step_backward
from ...._core.backend import undispatched
from ...._core.process.reproducibility import REPRODUCIBILITY
from ...tiers import library
from ..linalg.fixed_order import step_product
from ..runtime.dtypes import FULL_NAMES

_dot = undispatched(np.dot)
_WORTHWHILE = 100**3
"""From so many multiplications on the vendor's library is quicker than NumPy's."""


def serves(dtype: np.dtype[Any], sizes: Sequence[int]) -> bool:
    """Whether there are kernels for such a sequence: all of its steps have the same samples, at least one.

    Where a sample has to give the same bits in any batch, there are for all sequences.
    """
    return dtype in FULL_NAMES and sizes[0] > 0 and (sizes[0] == sizes[-1] or REPRODUCIBILITY.product is not None)


def _ordered(rows: Any, sizes: Sequence[int], reverse: bool) -> list[Any]:
    """The rows of each step, in the order in which the network sees them."""
    if len(sizes) == 1:
        return [rows]
    if sizes[0] == sizes[-1]:
        blocks = list(rows.reshape(len(sizes), sizes[0], rows.shape[-1]))
    else:
        blocks = [rows[end - size : end] for end, size in zip(accumulate(sizes), sizes, strict=True)]
    return blocks[::-1] if reverse else blocks


class _Carried:
    """What a step leaves for the next one; samples that have ended, or not begun, keep what they have."""

    def __init__(self, initial: Any, sizes: Sequence[int]) -> None:
        self.even = sizes[0] == sizes[-1]
        self.rows = np.ascontiguousarray(initial) if self.even else np.array(initial, order="C")

    def before(self, step: Any) -> Any:
        """The state of the samples that take part in a step."""
        return self.rows if self.even else self.rows[: len(step)]

    def become(self, rows: Any) -> None:
        """Take what the step made of it."""
        if self.even:
            self.rows = rows
        else:
            self.rows[: len(rows)] = rows


def _multiplier(rows: int, right: Any) -> Callable[[Any, Any, Any], object]:
    """What writes the product of a step's rows with the weights: (left, weights, out). All steps have the same ones."""
    if REPRODUCIBILITY.product is not None:
        return step_product(right)
    kernels = library() if rows * right.size >= _WORTHWHILE and right.dtype == np.float32 else None
    found = None if kernels is None else kernels.multiplier(rows, right)
    return _dot if found is None else lambda left, _, out: found(left, out)


def lstm_forward(
    gates: Any, hidden: Any, cell: Any, w_hh: Any, sizes: Sequence[int], reverse: bool
) -> tuple[Any, Any, Any, Any, Any]:
    """All steps of a layer, from the input's part of the gates, which they replace: output, cells, their tanh,
    the last state and cell.
    """
    dtype, (count, width) = gates.dtype, (len(gates), cell.shape[-1])
    output, cells, shown = [np.empty((count, width), dtype) for _ in range(3)]
    product = np.empty((sizes[0], 4 * width), dtype)
    weights = w_hh.T
    multiply, step = _multiplier(len(product), weights), lstm_step(FULL_NAMES[dtype])
    states, memory = _Carried(hidden, sizes), _Carried(cell, sizes)
    for gate, this, show, state in zip(
        *[_ordered(each, sizes, reverse) for each in (gates, cells, shown, output)], strict=True
    ):
        own = product[: len(gate)]
        multiply(states.before(gate), weights, own)
        step(gate, own, this, show, state, memory.before(gate))
        states.become(state)
        memory.become(this)
    return output, cells, shown, states.rows, memory.rows


def lstm_backward(
    of_output: Any,
    of_hidden: Any,
    of_cell: Any,
    gates: Any,
    before: Any,
    shown: Any,
    w_hh: Any,
    sizes: Sequence[int],
    reverse: bool,
) -> tuple[Any, Any, Any]:
    """The gradients of all gates, of the first state and of the first cell. `before` has the cell before each step."""
    dtype = gates.dtype
    of_gates = np.empty(gates.shape, dtype)
    of_hidden, of_cell = np.array(of_hidden, order="C"), np.array(of_cell, order="C")
    multiply, step = _multiplier(len(of_hidden), w_hh), lstm_step_backward(FULL_NAMES[dtype], of_output is not None)
    given = [
        _ordered(np.ascontiguousarray(each), sizes, not reverse)
        for each in (of_gates, gates, before, shown, shown if of_output is None else of_output)
    ]
    for of_gate, gate, old, show, of_step in zip(*given, strict=True):
        arriving = of_hidden[: len(gate)]
        step(of_gate, of_cell[: len(gate)], gate, old, of_step, show, arriving)
        multiply(of_gate, w_hh, arriving)
    return of_gates, of_hidden, of_cell


def gru_forward(
    products: Any, hidden: Any, w_hh: Any, b_hh: Any, sizes: Sequence[int], reverse: bool
) -> tuple[Any, Any, Any]:
    """All steps of a layer, from the input's part of the gates: the states, the gates, the last state."""
    dtype, (count, width) = products.dtype, (len(products), hidden.shape[-1])
    states, gates = np.empty((count, width), dtype), np.empty((count, 4 * width), dtype)
    product = np.empty((sizes[0], 3 * width), dtype)
    weights = w_hh.T
    multiply, step = _multiplier(len(product), weights), gru_step(FULL_NAMES[dtype])
    carried = _Carried(hidden, sizes)
    for given, gate, state in zip(*[_ordered(each, sizes, reverse) for each in (products, gates, states)], strict=True):
        own, before = product[: len(gate)], carried.before(gate)
        multiply(before, weights, own)
        if b_hh is not None:
            own += b_hh
        step(gate, given, own, state, before)
        carried.become(state)
    return states, gates, carried.rows


def gru_backward(
    of_output: Any, of_hidden: Any, gates: Any, before: Any, w_hh: Any, sizes: Sequence[int], reverse: bool
) -> tuple[Any, Any, Any]:
    """The gradients of the products with the state, of those with the input, and of the first state."""
    dtype, (count, width) = gates.dtype, before.shape
    of_states, of_inputs = np.empty((count, 3 * width), dtype), np.empty((count, 3 * width), dtype)
    of_hidden = np.array(of_hidden, order="C")
    kept = np.empty(of_hidden.shape, dtype)
    multiply, step = _multiplier(len(of_hidden), w_hh), gru_step_backward(FULL_NAMES[dtype], of_output is not None)
    given = [
        _ordered(np.ascontiguousarray(each), sizes, not reverse)
        for each in (of_states, of_inputs, gates, before, before if of_output is None else of_output)
    ]
    for of_state, of_input, gate, old, of_step in zip(*given, strict=True):
        arriving, own = of_hidden[: len(gate)], kept[: len(gate)]
        step(of_state, of_input, own, gate, of_step, old, arriving)
        multiply(of_state, w_hh, arriving)
        arriving += own
    return of_states, of_inputs, of_hidden
