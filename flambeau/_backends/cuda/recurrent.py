"""Recurrent layers on the device: for each step a product, which is the library's, and one kernel.

The functions have the arguments of the CPU's (`../cpu/recurrent.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from ..._codegen.cuda.recurrent import (
    THREADS,
    gru_step_backward_source,
    gru_step_source,
    lstm_step_backward_source,
    lstm_step_source,
)
from ..._core.arrays.quick import name_of
from .array import DeviceArray, empty, window
from .driver import driver

_FLOATS = frozenset(("float32", "float64"))


def serves(dtype: np.dtype[Any], sizes: Sequence[int]) -> bool:
    """Whether there are kernels for such a sequence: all of its steps have the same samples, at least one."""
    return name_of(dtype) in _FLOATS and sizes[0] == sizes[-1] and sizes[0] > 0


@cache
def _kernel(make: Callable[..., str], *parameters: Any) -> Any:
    return driver().compile(make(*parameters))


def _dense(array: DeviceArray) -> DeviceArray:
    return array if array.form.flags.c_contiguous else array.copy()


class _Steps:
    """The rows of an array without gaps, in equal parts, one for each step."""

    def __init__(self, array: DeviceArray, steps: int) -> None:
        self._array = array
        rows, width = array.form.shape
        self._shape = rows // steps, width
        self._strides = array.form.strides
        self.size = self._shape[0] * self._strides[0]

    def __getitem__(self, step: int) -> DeviceArray:
        return window(self._array, self._shape, self._array.form.dtype, step * self.size, self._strides)

    def place(self, step: int) -> int:
        """The address of a step's first element."""
        return self._array.pointer + step * self.size


def _order(steps: int, backwards: bool) -> range:
    return range(steps - 1, -1, -1) if backwards else range(steps)


def lstm_forward(
    gates: DeviceArray, hidden: DeviceArray, cell: DeviceArray, w_hh: DeviceArray, steps: int, reverse: bool
) -> tuple[DeviceArray, ...]:
    """All steps of a layer, from the input's part of the gates, which they replace: output, cells, their tanh, the last
    state and cell.
    """
    dtype, (count, width) = gates.dtype, (len(gates), cell.shape[-1])
    output, cells, shown = (empty((count, width), dtype) for _ in range(3))
    launch, pack, turned = _kernel(lstm_step_source, name_of(dtype)), Struct("=qqQQQQQ").pack, _dense(w_hh).T
    multiply = driver().multiply
    states, gate_steps, cell_steps = (_Steps(each, steps) for each in (output, gates, cells))
    state, before = _dense(hidden), _dense(cell)
    size = count // steps * width
    blocks = -(-size // THREADS)
    for step in _order(steps, reverse):
        multiply(gate_steps[step], state, turned, True)
        state, this = states[step], cell_steps[step]
        offset = step * states.size
        fields = pack(
            size, width, gate_steps.place(step), this.pointer, shown.pointer + offset, state.pointer, before.pointer
        )
        launch(blocks, THREADS, fields)
        before = this
    return output, cells, shown, state, before


def lstm_backward(
    of_output: DeviceArray | None, of_hidden: DeviceArray, of_cell: DeviceArray, gates: DeviceArray,
    before: DeviceArray, shown: DeviceArray, w_hh: DeviceArray, steps: int, reverse: bool,
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:  # fmt: skip
    """The gradients of all gates, of the first state and of the first cell. `before` has the cell before each step."""
    dtype, width = gates.dtype, shown.shape[-1]
    of_gates = empty(gates.shape, dtype)
    of_hidden, of_cell = of_hidden.copy(), of_cell.copy()
    launch = _kernel(lstm_step_backward_source, name_of(dtype), of_output is not None)
    pack, weight = Struct("=qqQQQQQQQ").pack, _dense(w_hh)
    gates, before, shown = _dense(gates), _dense(before), _dense(shown)
    coming = shown if of_output is None else _dense(of_output)
    multiply = driver().multiply
    results, given = _Steps(of_gates, steps), _Steps(gates, steps)
    part = _Steps(shown, steps).size
    size = of_hidden.form.size
    blocks = -(-size // THREADS)
    for step in _order(steps, not reverse):
        offset = step * part
        fields = pack(
            size, width, results.place(step), of_cell.pointer, given.place(step), before.pointer + offset,
            coming.pointer + offset, shown.pointer + offset, of_hidden.pointer,
        )  # fmt: skip
        launch(blocks, THREADS, fields)
        multiply(of_hidden, results[step], weight)
    return of_gates, of_hidden, of_cell


def gru_forward(
    products: DeviceArray, hidden: DeviceArray, w_hh: DeviceArray, b_hh: DeviceArray | None, steps: int, reverse: bool
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """All steps of a layer, from the input's part of the gates: the states, the gates, the last state."""
    dtype, (count, width) = products.dtype, (len(products), hidden.shape[-1])
    output, gates = empty((count, width), dtype), empty((count, 4 * width), dtype)
    product = empty((count // steps, 3 * width), dtype)
    launch, pack = _kernel(gru_step_source, name_of(dtype), b_hh is not None), Struct("=qqQQQQQQ").pack
    turned, products = _dense(w_hh).T, _dense(products)
    bias = 0 if b_hh is None else _dense(b_hh).pointer
    multiply = driver().multiply
    states, given, gate_steps = (_Steps(each, steps) for each in (output, products, gates))
    state = _dense(hidden)
    size = count // steps * width
    blocks = -(-size // THREADS)
    for step in _order(steps, reverse):
        multiply(product, state, turned)
        before, state = state, states[step]
        fields = pack(
            size, width, gate_steps.place(step), given.place(step), product.pointer, state.pointer, before.pointer, bias
        )
        launch(blocks, THREADS, fields)
    return output, gates, state


def gru_backward(
    of_output: DeviceArray | None, of_hidden: DeviceArray, gates: DeviceArray, before: DeviceArray, w_hh: DeviceArray,
    steps: int, reverse: bool,
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:  # fmt: skip
    """The gradients of the products with the state, of those with the input, and of the first state."""
    dtype, (count, width) = gates.dtype, before.shape
    of_states, of_inputs = empty((count, 3 * width), dtype), empty((count, 3 * width), dtype)
    of_hidden = of_hidden.copy()
    launch = _kernel(gru_step_backward_source, name_of(dtype), of_output is not None)
    pack, weight = Struct("=qqQQQQQQ").pack, _dense(w_hh)
    gates, before = _dense(gates), _dense(before)
    coming = before if of_output is None else _dense(of_output)
    multiply = driver().multiply
    results, inputs, given = (_Steps(each, steps) for each in (of_states, of_inputs, gates))
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
        multiply(of_hidden, results[step], weight, True)
    return of_states, of_inputs, of_hidden
