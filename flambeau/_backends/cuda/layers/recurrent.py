"""Recurrent layers on the device: for each step a product, which is the library's, and one kernel.

The functions have the arguments of the CPU's (`../cpu/recurrent.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from ...._codegen.cuda.recurrent import (
    THREADS,
    gru_step_backward_source,
    gru_step_source,
    lstm_step_backward_source,
    lstm_step_source,
)
from ...._core.arrays.quick import name_of
from ...._core.geometry.recurrence import GATES
from ..arrays.array import DeviceArray, dense, empty, form_of, window, zeros
from ..linalg.fixed_order import multiplying
from ..runtime.driver import driver

_FLOATS = frozenset(("float32", "float64"))


def serves(dtype: np.dtype[Any], sizes: Sequence[int]) -> bool:
    """Whether there are kernels for such a sequence: all of its steps have the same samples, at least one."""
    return name_of(dtype) in _FLOATS and sizes[0] == sizes[-1] and sizes[0] > 0


@cache
def _kernel(make: Callable[..., str], *parameters: Any) -> Any:
    return driver().compile(make(*parameters))


class _Steps:
    """The rows of an array without gaps, in equal parts, one for each step."""

    def __init__(self, array: DeviceArray, steps: int) -> None:
        self._array = array
        rows, width = array.form.shape
        self._shape = rows // steps, width
        self._strides = array.form.strides
        self.size = self._shape[0] * self._strides[0]

    @property
    def form(self) -> Any:
        """The form of the array of one step."""
        return self[0].form

    def __getitem__(self, step: int) -> DeviceArray:
        return window(self._array, self._shape, self._array.form.dtype, step * self.size, self._strides)

    def place(self, step: int) -> int:
        """The address of a step's first element."""
        return self._array.pointer + step * self.size


def _order(steps: int, backwards: bool) -> range:
    return range(steps - 1, -1, -1) if backwards else range(steps)


def lstm_forward(
    gates: DeviceArray, hidden: DeviceArray, cell: DeviceArray, w_hh: DeviceArray, sizes: Sequence[int], reverse: bool
) -> tuple[DeviceArray, ...]:
    """All steps of a layer, from the input's part of the gates, which they replace: output, cells, their tanh, the last
    state and cell.
    """
    dtype, (count, width), steps = gates.dtype, (len(gates), cell.shape[-1]), len(sizes)
    output, cells, shown = (empty((count, width), dtype) for _ in range(3))
    launch, pack, turned = _kernel(lstm_step_source, name_of(dtype)), Struct("=qqQQQQQ").pack, dense(w_hh).T
    states, gate_steps, cell_steps = (_Steps(each, steps) for each in (output, gates, cells))
    first_state, first_cell = dense(hidden), dense(cell)
    multiply = multiplying(gate_steps.form, first_state.form, turned.form, True)
    size = count // steps * width
    blocks = -(-size // THREADS)
    state, before, weight = first_state.pointer, first_cell.pointer, turned.pointer
    order = _order(steps, reverse)
    for step in order:
        gate = gate_steps.place(step)
        multiply(gate, state, weight)
        state, this = states.place(step), cell_steps.place(step)
        launch(blocks, THREADS, pack(size, width, gate, this, shown.pointer + step * states.size, state, before))
        before = this
    return output, cells, shown, states[order[-1]], cell_steps[order[-1]]


def lstm_backward(
    of_output: DeviceArray | None, of_hidden: DeviceArray, of_cell: DeviceArray, gates: DeviceArray,
    before: DeviceArray, shown: DeviceArray, w_hh: DeviceArray, sizes: Sequence[int], reverse: bool,
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:  # fmt: skip
    """The gradients of all gates, of the first state and of the first cell. `before` has the cell before each step.

    Each gate adds a part to the gradient of a state. The four products run side by side: few rows make few sums, and
    one product for all gates would make these four times as long.
    """
    dtype, width, steps = gates.dtype, shown.shape[-1], len(sizes)
    of_gates = empty(gates.shape, dtype)
    of_cell = of_cell.copy()
    parts: Any = zeros((GATES["lstm"], *of_hidden.shape), dtype)
    driver().copy(parts.pointer, dense(of_hidden).pointer, of_hidden.form.nbytes)
    launch = _kernel(lstm_step_backward_source, name_of(dtype), of_output is not None)
    pack, weight = Struct("=qqQQQQQQQ").pack, dense(w_hh)
    gates, before, shown = dense(gates), dense(before), dense(shown)
    coming = shown if of_output is None else dense(of_output)
    results, given = _Steps(of_gates, steps), _Steps(gates, steps)
    item = dtype.itemsize
    by_gate = form_of(parts.shape, dtype, (width * item, of_gates.strides[0], item))
    multiply = multiplying(parts.form, by_gate, form_of((parts.shape[0], width, width), dtype))
    part = _Steps(shown, steps).size
    size = of_hidden.form.size
    blocks = -(-size // THREADS)
    for step in _order(steps, not reverse):
        offset = step * part
        fields = pack(
            size, width, results.place(step), of_cell.pointer, given.place(step), before.pointer + offset,
            coming.pointer + offset, shown.pointer + offset, parts.pointer,
        )  # fmt: skip
        launch(blocks, THREADS, fields)
        multiply(parts.pointer, results.place(step), weight.pointer)
    return of_gates, np.sum(parts, 0), of_cell


def gru_forward(
    products: DeviceArray,
    hidden: DeviceArray,
    w_hh: DeviceArray,
    b_hh: DeviceArray | None,
    sizes: Sequence[int],
    reverse: bool,
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """All steps of a layer, from the input's part of the gates: the states, the gates, the last state."""
    dtype, (count, width), steps = products.dtype, (len(products), hidden.shape[-1]), len(sizes)
    output, gates = empty((count, width), dtype), empty((count, 4 * width), dtype)
    product = empty((count // steps, 3 * width), dtype)
    launch, pack = _kernel(gru_step_source, name_of(dtype), b_hh is not None), Struct("=qqQQQQQQ").pack
    turned, products = dense(w_hh).T, dense(products)
    bias = 0 if b_hh is None else dense(b_hh).pointer
    states, given, gate_steps = (_Steps(each, steps) for each in (output, products, gates))
    first_state = dense(hidden)
    multiply = multiplying(product.form, first_state.form, turned.form)
    size = count // steps * width
    blocks = -(-size // THREADS)
    state, order = first_state.pointer, _order(steps, reverse)
    for step in order:
        multiply(product.pointer, state, turned.pointer)
        before, state = state, states.place(step)
        fields = pack(size, width, gate_steps.place(step), given.place(step), product.pointer, state, before, bias)
        launch(blocks, THREADS, fields)
    return output, gates, states[order[-1]]


def gru_backward(
    of_output: DeviceArray | None, of_hidden: DeviceArray, gates: DeviceArray, before: DeviceArray, w_hh: DeviceArray,
    sizes: Sequence[int], reverse: bool,
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:  # fmt: skip
    """The gradients of the products with the state, of those with the input, and of the first state."""
    dtype, (count, width), steps = gates.dtype, before.shape, len(sizes)
    of_states, of_inputs = empty((count, 3 * width), dtype), empty((count, 3 * width), dtype)
    of_hidden = of_hidden.copy()
    launch = _kernel(gru_step_backward_source, name_of(dtype), of_output is not None)
    pack, weight = Struct("=qqQQQQQQ").pack, dense(w_hh)
    gates, before = dense(gates), dense(before)
    coming = before if of_output is None else dense(of_output)
    results, inputs, given = (_Steps(each, steps) for each in (of_states, of_inputs, gates))
    multiply = multiplying(of_hidden.form, results.form, weight.form, True)
    part = _Steps(before, steps).size
    size = of_hidden.form.size
    blocks = -(-size // THREADS)
    for step in _order(steps, not reverse):
        offset = step * part
        fields = pack(
            size, width, results.place(step), inputs.place(step), given.place(step), before.pointer + offset,
            coming.pointer + offset, of_hidden.pointer,
        )  # fmt: skip
        launch(blocks, THREADS, fields)
        multiply(of_hidden.pointer, results.place(step), weight.pointer)
    return of_states, of_inputs, of_hidden
