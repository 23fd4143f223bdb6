"""One layer of a recurrent network in one direction: a whole sequence in one op, with its derivative.

The rows of a sequence stand in one matrix, step after step; `sizes` says how many rows each step has. In a packed
sequence these numbers fall; where they do, the last rows of the state keep their values from then on (or, from the end
to the beginning, have their initial values until then).

The derivatives are written once, in operations that arrays and tensors have in common. A plain backward pass runs them
on arrays, in one op; where the pass is itself recorded they run on tensors, and so have derivatives in their turn. What
a layer keeps for its derivative are further results of it: in second derivatives, gradients arrive for these as well.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ..._backends import arrays as array_functions
from ..._core.backend import beside
from ..._core.modes import THREAD
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import Tensor
from ..._dispatch.dispatch import Array, several
from ..._dispatch.op import parameter_names
from ..create.like import zeros_like
from ..linalg.products import array_dot
from ..reduce.moments import widened, widened_tensor
from ..shape.join import cat
from .recurrent_samples import bias_sum, weight_product

Sizes = tuple[int, ...]

_SMALL = 1024
"""Up to so many elements, the number of calls decides how long a step takes."""


class _Library(NamedTuple):
    """The functions that arrays and tensors have under different names."""

    join: Callable[[list[Any], int], Any]
    zeros_like: Callable[[Any], Any]


_ARRAYS = _Library(np.concatenate, np.zeros_like)
_TENSORS = _Library(cat, zeros_like)


def _library(value: Any) -> _Library:
    return _TENSORS if isinstance(value, Tensor) else _ARRAYS


def _four(gates: Any, width: int) -> list[Any]:
    """The columns of each of four gates, which may have none."""
    return [gates[:, number * width : (number + 1) * width] for number in range(4)]


def _blocks(rows: Any, sizes: Sizes, reverse: bool) -> list[Any]:
    """The rows of each step, in the order in which the network sees them."""
    batch = sizes[0]
    if sizes[-1] == batch:
        blocks = list(rows.reshape(len(sizes), batch, *rows.shape[1:]))
    else:
        ends = list(accumulate(sizes))
        blocks = [rows[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    return blocks[::-1] if reverse else blocks


def _previous(lib: _Library, initial: Any, states: Any, sizes: Sizes, reverse: bool) -> Any:
    """For each row of the sequence the state before its step."""
    batch, initial = sizes[0], _matrix(initial)
    if len(sizes) == 1:
        return initial
    if sizes[-1] == batch:
        return lib.join([states[batch:], initial] if reverse else [initial, states[: len(states) - batch]], 0)
    parts: list[Any] = []
    before, count = initial, batch
    for state, size in zip(_blocks(states, sizes, reverse), sizes[::-1] if reverse else sizes, strict=True):
        parts += [before[:size]] if size <= count or not parts else [initial[count:size], before]
        before, count = state, size
    return lib.join(parts[::-1] if reverse else parts, 0)


def _matrix(state: Any) -> Any:
    """A state without the dimension of layers, of which it has one."""
    return state if state.ndim == 2 else state[0]


def _rows_of(input: Any) -> Any:
    return input.reshape(input.shape[0] * input.shape[1], input.shape[2]) if input.ndim == 3 else input


def _as_sequence(rows: Any, input: Any) -> Any:
    """`rows` in the leading dimensions of `input`."""
    return rows.reshape(*input.shape[:-1], rows.shape[-1]) if input.ndim == 3 else rows


def _product(left: Any, right: Any) -> Any:
    """The product of two matrices: arrays, or tensors where the derivative is recorded."""
    return left @ right if isinstance(left, Tensor) else array_dot(left, right)


def _times(left: Any, right: Any) -> Any:
    """The product of two matrices, which are small for arrays: those of one step."""
    if REPRODUCIBILITY.product is not None and type(left) is np.ndarray is type(right):
        return REPRODUCIBILITY.product(left, right)
    return left @ right


def _step(state: Any, weight: Any) -> Any:
    """The product of the state before a step with the weights, of arrays."""
    if REPRODUCIBILITY.product is not None and type(state) is np.ndarray:
        return REPRODUCIBILITY.product(state, weight)
    return state.dot(weight)


def _input_product(input: Any, weight: Any, *biases: Any) -> Any:
    result = array_dot(_rows_of(input), weight.T)
    bias = _sum_of(*[None if each is None else widened(each) for each in biases])
    if bias is not None:
        result += bias
    return result


class _State:
    """The state between the steps of a forward pass, with a row for each sample."""

    def __init__(self, initial: Any, sizes: Sizes) -> None:
        self.even = sizes[0] == sizes[-1]
        self.shape = initial.shape
        self.rows = _matrix(widened(initial))
        if not self.even:
            self.rows = self.rows.copy()

    def before(self, step: Any) -> Any:
        """The state before a step that has as many rows as `step`."""
        return self.rows if self.even else self.rows[: len(step)]

    def become(self, state: Any) -> None:
        """Take what the step made of it."""
        if self.even:
            self.rows = state
        else:
            self.rows[: len(state)] = state

    def last(self, kind: Any) -> Any:
        """A new array of the state, in another dtype and in the shape of the initial one."""
        return self.rows.astype(kind).reshape(self.shape)


def _sum_of(*parts: Any) -> Any:
    """The sum of what is not None."""
    total = None
    for part in parts:
        if part is not None:
            total = part if total is None else total + part
    return total


class _Backwards:
    """The walk from a layer's last step to its first."""

    def __init__(self, lib: _Library, sizes: Sizes, reverse: bool) -> None:
        self.lib, self.sizes, self.reverse = lib, sizes, reverse
        self.even = sizes[0] == sizes[-1]

    def blocks(self, rows: Any) -> list[Any]:
        """The rows of each step; for None as many times None."""
        return [None] * len(self.sizes) if rows is None else _blocks(rows, self.sizes, not self.reverse)

    def last(self, of_last: Any, initial: Any) -> Any:
        """The gradient of the last state, zeros if there is none."""
        return _matrix(self.lib.zeros_like(initial) if of_last is None else of_last)

    def first(self, of_state: Any, initial: Any) -> Any:
        """The gradient that has arrived at the initial state, in the shape of that."""
        return of_state if initial.ndim == 2 else of_state[None]

    def arriving(self, of_state: Any, of_output: Any, like: Any) -> Any:
        """The gradient of a step's state: what the later steps gave, and what its output is given."""
        head = of_state if self.even else of_state[: len(like)]
        return head if of_output is None else head + of_output

    def replaced(self, full: Any, head: Any) -> Any:
        """`full` with its first rows replaced."""
        return head if self.even else self.lib.join([head, full[len(head) :]], 0)

    def whole(self, parts: list[Any]) -> Any:
        """What the steps gave, as one sequence."""
        return self.lib.join(parts if self.reverse else parts[::-1], 0)


def _of_parameters(
    needed: tuple[bool, ...], input: Any, states: Any, of_input: Any, of_state: Any, sizes: Sizes
) -> list[Any]:
    """The gradients of both weights and both biases, from those of the products to which they belong."""
    of_bias = bias_sum(of_input, sizes) if needed[2] else None
    if of_bias is None or of_state is not of_input:
        of_other = bias_sum(of_state, sizes) if needed[3] else None
    else:
        of_other = of_bias if isinstance(of_bias, Tensor) else of_bias.copy()
    return [
        weight_product(of_input, _rows_of(input), sizes) if needed[0] else None,
        weight_product(of_state, states, sizes) if needed[1] else None,
        of_bias,
        of_other,
    ]


@several(None)
def _recurrent_backward(
    values: list[Array], given: list[bool], gradients: Any, grads: int, needed: tuple[bool, ...], options: Any
) -> tuple[Array, ...]:
    rest = iter(values)
    spread = [next(rest) if each else None for each in given]
    found = gradients(spread[:grads], needed, *spread[grads:], *options)
    return tuple(each for each, wanted in zip(found, needed, strict=True) if wanted)


def _formula(gradients: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """The formula of an op, which runs `gradients` on arrays, in one op, or on tensors if the pass is recorded.

    The formula takes what `gradients` takes: what is saved, and from `sizes` on the options of the layer.
    """
    count = parameter_names(gradients).index("sizes") - 2

    @functools.wraps(gradients)
    def formula(grads: list[Any], needed: tuple[bool, ...], *taken: Any) -> list[Any]:
        return _differentiate(gradients, grads, needed, taken[:count], taken[count:])

    return formula


def _differentiate(
    gradients: Callable[..., list[Any]], grads: list[Any], needed: tuple[bool, ...], saved: Any, options: Any
) -> list[Any]:
    values, count = [*grads, *saved], len(grads)
    if saved[0].dtype.itemsize == 2:
        values = [widened_tensor(each) for each in values]
    if saved[0].is_complex():
        values[count:] = [None if each is None else each.conj().resolve_conj() for each in values[count:]]
    if THREAD.modes.grad:
        return gradients(values[:count], needed, *values[count:], *options)
    found = iter(
        _recurrent_backward(
            [each for each in values if each is not None],
            [each is not None for each in values],
            gradients,
            count,
            needed,
            options,
        )
    )
    return [next(found) if each else None for each in needed]


# ----- tanh and relu -----------------------------------------------------------------------------------------------


def _rnn_gradients(
    grads: list[Any],
    needed: tuple[bool, ...],
    input: Any,
    hx: Any,
    w_ih: Any,
    w_hh: Any,
    states: Any,
    sizes: Sizes,
    reverse: bool,
    relu: bool,
) -> list[Any]:
    of_output, of_hidden, of_states = grads
    lib = _library(states)
    of_rows = _sum_of(None if of_output is None else _rows_of(of_output), of_states)
    slopes = states > 0 if relu else 1 - states * states
    walk = _Backwards(lib, sizes, reverse)
    of_hidden = walk.last(of_hidden, hx)
    parts = []
    for slope, of_step in zip(walk.blocks(slopes), walk.blocks(of_rows), strict=True):
        of_product = walk.arriving(of_hidden, of_step, slope) * slope
        parts.append(of_product)
        of_hidden = walk.replaced(of_hidden, _times(of_product, w_hh))
    of_products = walk.whole(parts)
    before = _previous(lib, hx, states, sizes, reverse)
    of_input = _as_sequence(_product(of_products, w_ih), input) if needed[0] else None
    return [
        of_input,
        walk.first(of_hidden, hx),
        *_of_parameters(needed[2:], input, before, of_products, of_products, sizes),
    ]


@several("MkldnnRnnLayerBackward0", joint=_formula(_rnn_gradients), results=("output", "hidden", "states"))
def rnn_layer(
    input: Array,
    hx: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array | None,
    b_hh: Array | None,
    sizes: Sizes,
    reverse: bool,
    relu: bool,
) -> tuple[Array, Array, Array]:
    """`tanh` or `relu` of the sum of both products, step by step: the output, the last state, the states again."""
    kind = input.dtype
    input, w_ih, w_hh = widened(input), widened(w_ih), widened(w_hh)
    states = _input_product(input, w_ih, b_ih, b_hh)
    hidden = _State(hx, sizes)
    turned = w_hh.T
    for state in _blocks(states, sizes, reverse):
        state += _step(hidden.before(state), turned)
        if relu:
            np.maximum(state, 0, out=state)
        else:
            np.tanh(state, state)
        hidden.become(state)
    return _as_sequence(states, input).astype(kind), hidden.last(kind), states


# ----- gru ---------------------------------------------------------------------------------------------------------


def _gru_gradients(
    grads: list[Any],
    needed: tuple[bool, ...],
    input: Any,
    hx: Any,
    w_ih: Any,
    w_hh: Any,
    states: Any,
    gates: Any,
    sizes: Sizes,
    reverse: bool,
) -> list[Any]:
    of_output, of_hidden, of_states, of_gates = grads
    lib = _library(gates)
    of_rows = _sum_of(None if of_output is None else _rows_of(of_output), of_states)
    count, width = states.shape
    reset, update, new, product = _four(gates, width)
    before = _previous(lib, hx, states, sizes, reverse)
    walk = _Backwards(lib, sizes, reverse)
    done = None
    if lib is _ARRAYS and gates.size and of_gates is None:
        done = array_functions.gru_steps_backward(
            of_rows, walk.last(of_hidden, hx), gates, before, w_hh, sizes, reverse
        )
    if done is not None:
        of_states, of_inputs, start = done
        return [
            _as_sequence(_product(of_inputs, w_ih), input) if needed[0] else None,
            walk.first(start, hx),
            *_of_parameters(needed[2:], input, before, of_inputs, of_states, sizes),
        ]
    # By how much each gate moves the state, as the last one of four the candidate's part from the input.
    by_new = (1 - update) * (1 - new * new)
    to_reset = product * reset * (1 - reset)
    slope = update * (1 - update)
    factors = lib.join([by_new * to_reset, (before - new) * slope, by_new * reset, by_new], 1).reshape(count, 4, width)
    own = None
    if of_gates is not None:  # the gates' own gradients, in second derivatives
        direct = _four(of_gates, width)
        of_new = direct[2] * (1 - new * new)
        of_reset = direct[0] * reset * (1 - reset) + of_new * to_reset
        own = lib.join([of_reset, direct[1] * slope, direct[3] + of_new * reset, of_new], 1).reshape(count, 4, width)
    of_hidden = walk.last(of_hidden, hx)
    parts = []
    given = (walk.blocks(each) for each in (factors, update, of_rows, own))
    for factor, kept, of_step, of_gate in zip(*given, strict=True):
        of_state = walk.arriving(of_hidden, of_step, factor)
        of_products = of_state[:, None] * factor
        if of_gate is not None:
            of_products = of_products + of_gate
        parts.append(of_products)
        through = _times(of_products[:, :3].reshape(len(of_products), 3 * width), w_hh) + of_state * kept
        of_hidden = walk.replaced(of_hidden, through)
    of_all = walk.whole(parts)
    of_states = of_all[:, :3].reshape(count, 3 * width)
    of_inputs = lib.join([of_all[:, :2], of_all[:, 3:]], 1).reshape(count, 3 * width)
    of_input = _as_sequence(_product(of_inputs, w_ih), input) if needed[0] else None
    return [
        of_input,
        walk.first(of_hidden, hx),
        *_of_parameters(needed[2:], input, before, of_inputs, of_states, sizes),
    ]


@several("MkldnnRnnLayerBackward0", joint=_formula(_gru_gradients), results=("output", "hidden", "states", "gates"))
def gru_layer(
    input: Array,
    hx: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array | None,
    b_hh: Array | None,
    sizes: Sizes,
    reverse: bool,
) -> tuple[Array, Array, Array, Array]:
    """Gated recurrent units: the output, the last state, the states again, and each step's gates.

    The gates are reset, update, the candidate, and the candidate's product with the state.
    """
    kind = input.dtype
    input, w_ih, w_hh = widened(input), widened(w_ih), widened(w_hh)
    products = _input_product(input, w_ih, b_ih)
    done = None
    if products.size:
        start, bias = _matrix(widened(hx)), None if b_hh is None else widened(b_hh)
        done = array_functions.gru_steps(products, start, w_hh, bias, sizes, reverse)
    if done is not None:
        states, gates, last = done
        return _as_sequence(states, input).astype(kind), last.astype(kind).reshape(hx.shape), states, gates
    hidden = _State(hx, sizes)
    width = hx.shape[-1]
    turned = w_hh.T
    gates = np.empty((len(products), 4 * width), products.dtype, like=input)
    states = np.empty((len(products), width), products.dtype, like=input)
    columns = _four(gates, width)
    arrays = (products[:, : 2 * width], products[:, 2 * width :], gates[:, : 2 * width], *columns, states)
    for to_open, to_new, open_, reset, update, new, product, state in zip(
        *(_blocks(each, sizes, reverse) for each in arrays), strict=True
    ):
        before = hidden.before(state)
        from_state = _step(before, turned)
        if b_hh is not None:
            from_state += b_hh
        np.add(to_open, from_state[:, : 2 * width], open_)
        _sigmoid(open_)
        product[...] = from_state[:, 2 * width :]
        np.multiply(reset, product, new)
        new += to_new
        np.tanh(new, new)
        np.subtract(before, new, state)
        state *= update
        state += new
        hidden.become(state)
    return _as_sequence(states, input).astype(kind), hidden.last(kind), states, gates


def _sigmoid(array: Any) -> None:
    """In place the logistic function."""
    array *= 0.5
    np.tanh(array, array)
    array *= 0.5
    array += 0.5


# ----- lstm --------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=32)
def _gate_scales(rows: int, width: int, kind: Any) -> tuple[Array, Array]:
    """What to multiply by before and after a tanh and what to add then, so that it serves all four gates.

    The logistic function is (1 + tanh(x / 2)) / 2.
    """
    scale, shift = np.full((rows, 4 * width), 0.5, kind), np.full((rows, 4 * width), 0.5, kind)
    scale[:, 2 * width : 3 * width], shift[:, 2 * width : 3 * width] = 1, 0
    return scale, shift


def _lstm_gradients(
    grads: list[Any],
    needed: tuple[bool, ...],
    input: Any,
    hx: Any,
    cx: Any,
    w_ih: Any,
    w_hh: Any,
    w_hr: Any,
    gates: Any,
    cells: Any,
    shown: Any,
    sizes: Sizes,
    reverse: bool,
) -> list[Any]:
    of_output, of_hidden, of_cell, of_gates, of_cells, of_shown = grads
    lib = _library(gates)
    of_rows = None if of_output is None else _rows_of(of_output)
    count, width = cells.shape
    walk = _Backwards(lib, sizes, reverse)
    before = _previous(lib, cx, cells, sizes, reverse)
    done = None
    if lib is _ARRAYS and w_hr is None and gates.size and of_gates is of_cells is of_shown is None:
        ends = walk.last(of_hidden, hx), walk.last(of_cell, cx)
        done = array_functions.lstm_steps_backward(of_rows, *ends, gates, before, shown, w_hh, sizes, reverse)
    if done is not None:
        of_all, *starts = done
        outputs = gates[:, 3 * width :] * shown if len(sizes) > 1 else shown  # of one step they are before no other
        states = _previous(lib, hx, outputs, sizes, reverse) if needed[4] else None
        return [
            _as_sequence(_product(of_all, w_ih), input) if needed[0] else None,
            *[walk.first(each, initial) for each, initial in zip(starts, (hx, cx), strict=True)],
            *_of_parameters(needed[3:], input, states, of_all, of_all, sizes),
            None,
        ]
    enter, forget, new, leave = _four(gates, width)
    # By how much the first three gates move the cell, and the last one the output.
    slopes = [enter * (1 - enter), forget * (1 - forget), 1 - new * new, leave * (1 - leave)]
    values = [new, before, enter, shown]
    factors = lib.join([slope * value for slope, value in zip(slopes, values, strict=True)], 1)
    factors = factors.reshape(count, 4, width)
    to_cell = leave * (1 - shown * shown)
    own = None if of_gates is None else (of_gates * lib.join(slopes, 1)).reshape(count, 4, width)
    of_cells = _sum_of(of_cells, None if of_shown is None else of_shown * (1 - shown * shown))
    of_hidden = walk.last(of_hidden, hx)
    of_cell = walk.last(of_cell, cx)
    parts, projected = [], []
    given = (walk.blocks(each) for each in (factors, to_cell, forget, of_rows, of_cells, own))
    for factor, slope, kept, of_step, of_this, of_gate in zip(*given, strict=True):
        of_state = walk.arriving(of_hidden, of_step, slope)
        if w_hr is not None:
            projected.append(of_state)
            of_state = _times(of_state, w_hr)
        of_new = walk.arriving(of_cell, of_this, slope) + of_state * slope
        of_products = lib.join([of_new[:, None] * factor[:, :3], of_state[:, None] * factor[:, 3:]], 1)
        if of_gate is not None:
            of_products = of_products + of_gate
        of_products = of_products.reshape(len(of_products), 4 * width)
        parts.append(of_products)
        of_hidden = walk.replaced(of_hidden, _times(of_products, w_hh))
        of_cell = walk.replaced(of_cell, of_new * kept)
    of_all = walk.whole(parts)
    outputs = leave * shown
    states = outputs if w_hr is None else _times(outputs, w_hr.T)
    of_input = _as_sequence(_product(of_all, w_ih), input) if needed[0] else None
    before = _previous(lib, hx, states, sizes, reverse) if needed[4] else None
    of_projection = weight_product(walk.whole(projected), outputs, sizes) if needed[7] else None
    return [
        of_input,
        walk.first(of_hidden, hx),
        walk.first(of_cell, cx),
        *_of_parameters(needed[3:], input, before, of_all, of_all, sizes),
        of_projection,
    ]


@several(
    "MkldnnRnnLayerBackward0",
    joint=_formula(_lstm_gradients),
    results=("output", "hidden", "cell", "gates", "cells", "shown"),
)
def lstm_layer(
    input: Array,
    hx: Array,
    cx: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array | None,
    b_hh: Array | None,
    w_hr: Array | None,
    sizes: Sizes,
    reverse: bool,
) -> tuple[Array, ...]:
    """Long short-term memory: the output, the last state and cell, and each step's gates, cell and its tanh.

    The gates are input, forget, the candidate and output. `w_hr` projects the state.
    """
    kind = input.dtype
    input, w_ih, w_hh = widened(input), widened(w_ih), widened(w_hh)
    w_hr = None if w_hr is None else widened(w_hr)
    gates = _input_product(input, w_ih, b_ih, b_hh)
    done = None
    if w_hr is None and gates.size:
        start, cell_start = _matrix(widened(hx)), _matrix(widened(cx))
        done = array_functions.lstm_steps(gates, start, cell_start, w_hh, sizes, reverse)
    if done is not None:
        output, cells, shown, end, cell_end = done
        last, last_cell = end.astype(kind).reshape(hx.shape), cell_end.astype(kind).reshape(cx.shape)
        return _as_sequence(output, input).astype(kind, copy=False), last, last_cell, gates, cells, shown
    count, width = len(gates), cx.shape[-1]
    # NumPy is slow to repeat a row where there is little else to do.
    small = sizes[0] == sizes[-1] and sizes[0] * width <= _SMALL
    scales = _gate_scales(max(sizes[0], 1) if small else 1, width, gates.dtype)
    scale, shift = (beside(each, gates) for each in scales)
    gates *= scale[0]
    turned = (w_hh * scale[0][:, None]).T
    hidden, cell = _State(hx, sizes), _State(cx, sizes)
    output = np.empty((count, hx.shape[-1]), gates.dtype, like=input)
    cells, shown = np.empty((count, width), gates.dtype, like=input), np.empty((count, width), gates.dtype, like=input)
    columns = _four(gates, width)
    arrays = (gates, *columns, cells, shown, output)
    for gate, enter, forget, new, leave, this, show, state in zip(
        *(_blocks(each, sizes, reverse) for each in arrays), strict=True
    ):
        gate += _step(hidden.before(state), turned)
        np.tanh(gate, gate)
        gate *= scale
        gate += shift
        np.multiply(forget, cell.before(this), this)
        this += enter * new
        np.tanh(this, show)
        if w_hr is None:
            np.multiply(leave, show, state)
        else:
            state[...] = _times(leave * show, w_hr.T)
        hidden.become(state)
        cell.become(this)
    return (
        _as_sequence(output, input).astype(kind, copy=False),
        hidden.last(kind),
        cell.last(kind),
        gates,
        cells,
        shown,
    )
