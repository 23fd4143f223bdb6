"""One layer of an LSTM or a GRU over a whole sequence, in one direction or in both, and its derivative.

Parameters are PyTorch's. What differs in oneDNN:

- Weights are indexed (layer, direction, input, gate, output). PyTorch's matrix (gates x outputs, inputs) is that with
  other strides, so one direction of an LSTM is passed as it is.
- An LSTM's gates have the same order: input, forget, candidate, output. A GRU's are update, reset, candidate, where
  PyTorch has reset, update, candidate; its weights are copied in that order. PyTorch resets after the product with the
  state, which oneDNN calls linear before reset.
- There is one bias instead of two, whose sum it is. The candidate of a GRU keeps two, because the reset comes between.
- In bfloat16, the biases, the cell's state and all gradients are float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .constants import (
    BACKWARD,
    BIAS,
    BIDIRECTIONAL_CONCAT,
    DIFF_BIAS,
    DIFF_DST,
    DIFF_DST_ITER,
    DIFF_DST_ITER_C,
    DIFF_SRC,
    DIFF_SRC_ITER,
    DIFF_SRC_ITER_C,
    DIFF_WEIGHTS,
    DIFF_WEIGHTS_ITER,
    DST,
    DST_ITER,
    DST_ITER_C,
    F32,
    FORWARD_INFERENCE,
    FORWARD_TRAINING,
    LEFT_TO_RIGHT,
    RIGHT_TO_LEFT,
    RNN_OVERWRITE,
    SRC,
    SRC_ITER,
    SRC_ITER_C,
    WEIGHTS,
    WEIGHTS_ITER,
    WORKSPACE,
)
from .library import Handle, Unsupported
from .memory import (
    Array,
    Buffer,
    Shape,
    address,
    common_data_type,
    dense_strides,
    descriptor,
    new_array,
    new_buffer,
    prepared,
)
from .primitives import Argument, Primitive, cached, described


class Parameters(NamedTuple):
    """The parameters of one direction, or their gradients; biases are both there or both None."""

    w_ih: Array
    w_hh: Array
    b_ih: Array | None
    b_hh: Array | None


class Result(NamedTuple):
    """What a layer computed: the outputs (steps, batch, directions x width), the last states (directions, batch,
    width), the last cells of an LSTM, always in float32, and what the derivative needs.
    """

    output: Array
    hidden: Array
    cell: Array | None
    reserve: Buffer | None


class Gradients(NamedTuple):
    """The gradients of a layer's inputs."""

    input: Array
    hidden: Array
    cell: Array | None
    parameters: list[Parameters]


class _Cell(NamedTuple):
    name: str
    gates: tuple[int, ...]
    """Which of PyTorch's gates stands at each place of oneDNN's."""
    has_cell: bool


_LSTM = _Cell("lstm", (0, 1, 2, 3), True)
_GRU = _Cell("lbr_gru", (1, 0, 2), False)
_BIASES = 4  # a bias for each gate of an LSTM; three and the second one of the candidate of a GRU


class _Problem(NamedTuple):
    cell: _Cell
    steps: int
    batch: int
    inputs: int
    width: int
    direction: int
    kind: int

    @property
    def directions(self) -> int:
        return 2 if self.direction == BIDIRECTIONAL_CONCAT else 1

    @property
    def state(self) -> Shape:
        return (1, self.directions, self.batch, self.width)

    @property
    def sequence(self) -> Shape:
        return (self.steps, self.batch, self.inputs)

    @property
    def output(self) -> Shape:
        return (self.steps, self.batch, self.directions * self.width)


# ----- for callers --------------------------------------------------------------------------------------------------


def lstm(
    input: Array,
    hidden: Array,
    cell: Array,
    parameters: Sequence[Parameters],
    reverse: bool = False,
    training: bool = False,
) -> Result:
    """A layer of long short-term memory over (steps, batch, inputs); two sets of parameters are two directions."""
    return _run(_LSTM, input, hidden, cell, parameters, reverse, training)


def gru(
    input: Array, hidden: Array, parameters: Sequence[Parameters], reverse: bool = False, training: bool = False
) -> Result:
    """A layer of gated recurrent units over (steps, batch, inputs); two sets of parameters are two directions."""
    return _run(_GRU, input, hidden, None, parameters, reverse, training)


def lstm_backward(
    grads: tuple[Array | None, Array | None, Array | None],
    input: Array,
    hidden: Array,
    cell: Array,
    parameters: Sequence[Parameters],
    result: Result,
    reverse: bool = False,
) -> Gradients:
    """The gradients of `lstm` from those of its output, last states and last cells; `result` is of training."""
    return _run_backward(_LSTM, grads, input, hidden, cell, parameters, result, reverse)


def gru_backward(
    grads: tuple[Array | None, Array | None],
    input: Array,
    hidden: Array,
    parameters: Sequence[Parameters],
    result: Result,
    reverse: bool = False,
) -> Gradients:
    """The gradients of `gru` from those of its output and last states; `result` is of training."""
    return _run_backward(_GRU, (*grads, None), input, hidden, None, parameters, result, reverse)


# ----- running ------------------------------------------------------------------------------------------------------


def _run(
    kind: _Cell,
    input: Array,
    hidden: Array,
    cell: Array | None,
    parameters: Sequence[Parameters],
    reverse: bool,
    training: bool,
) -> Result:
    problem = _checked(kind, input, hidden, cell, parameters, reverse)
    input, strides = prepared(input)
    found = _forward(problem, strides, training)
    output = new_array(problem.output, input.dtype)
    last_hidden = new_array(problem.state[1:], input.dtype)
    last_cell = new_array(problem.state[1:], np.float32)
    arrays = [input, *_operands(problem, hidden, cell, parameters), output, last_hidden]
    if kind.has_cell:
        arrays.append(last_cell)
    addresses = [address(each) for each in arrays]
    reserve = None
    if training:
        reserve = new_buffer(found.size(WORKSPACE))
        addresses.append(reserve.address)
    found.run(addresses)
    # The cells stay in single precision: they are also what the derivative reads.
    return Result(output, last_hidden, last_cell if kind.has_cell else None, reserve)


def _run_backward(
    kind: _Cell,
    grads: tuple[Array | None, Array | None, Array | None],
    input: Array,
    hidden: Array,
    cell: Array | None,
    parameters: Sequence[Parameters],
    result: Result,
    reverse: bool,
) -> Gradients:
    problem = _checked(kind, input, hidden, cell, parameters, reverse)
    if result.reserve is None:
        raise ValueError("the derivative needs the result of a layer in training")
    results = [result.output, result.hidden, *([result.cell] if kind.has_cell else [])]
    expected = [problem.output, problem.state[1:], problem.state[1:]]
    if any(each is None or each.shape != shape for each, shape in zip(results, expected, strict=False)):
        raise ValueError("the result does not belong to this layer")
    input, strides = prepared(input)
    found = _backward(problem, strides)
    if found.size(WORKSPACE) != result.reserve.size:
        raise ValueError("the result does not belong to this layer")
    count = 3 if kind.has_cell else 2
    arriving = [
        np.zeros(shape, np.float32) if grad is None else _single(grad, shape)
        for grad, shape in zip(grads[:count], expected, strict=False)
    ]
    directions, inputs, width = problem.directions, problem.inputs, problem.width
    gates = len(kind.gates)
    leaving = [
        np.empty(shape, np.float32)
        for shape in (
            problem.sequence,
            *[problem.state[1:]] * (count - 1),
            (directions, gates, width, inputs),
            (directions, gates, width, width),
            (directions, _BIASES, width),
        )
    ]
    kept = [np.ascontiguousarray(each) for each in results if each is not None]
    arrays = [input, *_operands(problem, hidden, cell, parameters), *kept, *arriving, *leaving]
    found.run([*[address(each) for each in arrays], result.reserve.address])
    of_input, of_hidden, *of_cell, of_ih, of_hh, of_bias = leaving
    dtype = input.dtype
    return Gradients(
        of_input.astype(dtype, copy=False),
        of_hidden.astype(dtype, copy=False),
        of_cell[0].astype(dtype, copy=False) if of_cell else None,
        [
            _as_parameters(problem, ih, hh, bias if given.b_ih is not None else None, dtype)
            for ih, hh, bias, given in zip(of_ih, of_hh, of_bias, parameters, strict=True)
        ],
    )


def _checked(
    kind: _Cell,
    input: Array,
    hidden: Array,
    cell: Array | None,
    parameters: Sequence[Parameters],
    reverse: bool,
) -> _Problem:
    """What is to be computed, after a look at all shapes: oneDNN itself does not see what lies behind an address."""
    if input.ndim != 3 or hidden.ndim != 3:
        raise ValueError(f"expected an input and a state of 3 dimensions, but got {input.ndim} and {hidden.ndim}")
    if not input.size or not hidden.size:
        raise Unsupported("oneDNN is not asked about empty arrays")
    directions, batch, width = hidden.shape
    steps, rows, inputs = input.shape
    rows_of_gates = len(kind.gates) * width
    shapes = [(rows_of_gates, inputs), (rows_of_gates, width), (rows_of_gates,), (rows_of_gates,)]
    fits = rows == batch and len(parameters) == directions <= 2 and not (reverse and directions == 2)
    fits = fits and (cell is None or cell.shape == hidden.shape)
    for each in parameters:
        fits = fits and (each.b_ih is None) == (each.b_hh is None)
        fits = fits and all(a is None or a.shape == shape for a, shape in zip(each, shapes, strict=True))
    if not fits:
        raise ValueError(f"the parameters do not fit an input of shape {input.shape} and a state of {hidden.shape}")
    number = common_data_type(input, hidden, *[each for one in parameters for each in one])
    direction = BIDIRECTIONAL_CONCAT if directions == 2 else RIGHT_TO_LEFT if reverse else LEFT_TO_RIGHT
    return _Problem(kind, steps, batch, inputs, width, direction, number)


def _single(array: Array, shape: Shape) -> Array:
    if array.shape != shape:
        raise ValueError(f"expected a gradient of shape {shape}, but got {array.shape}")
    return np.require(array, np.float32, ("C", "A"))


def _operands(problem: _Problem, hidden: Array, cell: Array | None, parameters: Sequence[Parameters]) -> list[Array]:
    """States, weights and biases as oneDNN wants them."""
    states = [np.ascontiguousarray(hidden)]
    if cell is not None:
        states.append(_single(cell, hidden.shape))
    weights = [_stacked(problem, [each[at] for each in parameters]) for at in (0, 1)]
    return [*states, *weights, _biases(problem, parameters)]


def _stacked(problem: _Problem, weights: Sequence[Any]) -> Array:
    """The weights of all directions (directions, gates, width, inputs), the gates in oneDNN's order."""
    gates = list(problem.cell.gates)
    blocks = [each.reshape(len(gates), problem.width, -1) for each in weights]
    if len(blocks) == 1 and gates == sorted(gates):
        return np.require(blocks[0][None], requirements=("C", "A"))
    return np.stack([each[gates] for each in blocks])


def _biases(problem: _Problem, parameters: Sequence[Parameters]) -> Array:
    """The biases of all directions, in single precision."""
    result = np.zeros((problem.directions, _BIASES, problem.width), np.float32)
    gates = problem.cell.gates
    for row, each in zip(result, parameters, strict=True):
        if each.b_ih is None or each.b_hh is None:
            continue
        of_input, of_state = (bias.reshape(len(gates), -1).astype(np.float32) for bias in (each.b_ih, each.b_hh))
        if problem.cell.has_cell:
            row[:] = of_input + of_state
        else:
            row[:2] = (of_input + of_state)[list(gates[:2])]
            row[2], row[3] = of_input[2], of_state[2]
    return result


def _as_parameters(problem: _Problem, of_ih: Array, of_hh: Array, of_bias: Array | None, dtype: Any) -> Parameters:
    """The gradients of one direction in PyTorch's order."""
    gates = list(problem.cell.gates)  # exchanging two gates is its own inverse
    rows = len(gates) * problem.width
    if not problem.cell.has_cell:
        of_ih, of_hh = of_ih[gates], of_hh[gates]
    of_ih, of_hh = (each.reshape(rows, -1).astype(dtype, copy=False) for each in (of_ih, of_hh))
    if of_bias is None:
        return Parameters(of_ih, of_hh, None, None)
    of_bias = of_bias.astype(dtype)
    if problem.cell.has_cell:
        return Parameters(of_ih, of_hh, of_bias.reshape(rows), of_bias.reshape(rows).copy())
    return Parameters(of_ih, of_hh, of_bias[[1, 0, 2]].reshape(rows), of_bias[[1, 0, 3]].reshape(rows))


# ----- primitives ---------------------------------------------------------------------------------------------------


class _Layouts(NamedTuple):
    """The descriptors of everything that a layer reads and writes, in the order of oneDNN's functions."""

    input: Handle
    hidden: Handle
    cell: Handle | None
    w_ih: Handle
    w_hh: Handle
    bias: Handle
    output: Handle
    last_hidden: Handle
    last_cell: Handle | None

    def ordered(self, has_cell: bool) -> list[Handle | None]:
        """As parameters of a function that makes a primitive descriptor."""
        if not has_cell:
            return [each for each in self if each is not None]
        none: list[Handle | None] = [None, None]  # no peephole, no projection
        return [*self[:5], *none, *self[5:]]


def _layouts(problem: _Problem, kind: int, free_weights: bool) -> _Layouts:
    """Plain layouts, of the weights too or else oneDNN's choice."""
    state = descriptor(problem.state, dense_strides(problem.state), kind)
    cell = descriptor(problem.state, dense_strides(problem.state), F32) if problem.cell.has_cell else None
    directions, width, gates = problem.directions, problem.width, len(problem.cell.gates)

    def weights(inputs: int) -> Handle:
        shape = (1, directions, inputs, gates, width)
        one = gates * width * inputs
        return descriptor(shape, None if free_weights else (directions * one, one, 1, width * inputs, inputs), kind)

    bias = (1, directions, _BIASES, width)
    return _Layouts(
        descriptor(problem.sequence, dense_strides(problem.sequence), kind),
        state,
        cell,
        weights(problem.inputs),
        weights(width),
        descriptor(bias, dense_strides(bias), F32),
        descriptor(problem.output, dense_strides(problem.output), kind),
        state,
        cell,
    )


_INPUTS = (SRC, SRC_ITER, SRC_ITER_C, WEIGHTS, WEIGHTS_ITER, BIAS)
_OUTPUTS = (DST, DST_ITER, DST_ITER_C)
_ARRIVING = (DIFF_DST, DIFF_DST_ITER, DIFF_DST_ITER_C)
_LEAVING = (DIFF_SRC, DIFF_SRC_ITER, DIFF_SRC_ITER_C, DIFF_WEIGHTS, DIFF_WEIGHTS_ITER, DIFF_BIAS)


def _arguments(numbers: Sequence[int], layouts: Sequence[Handle | None], result: bool) -> list[Argument]:
    pairs = zip(numbers, layouts, strict=True)
    return [Argument(number, layout, result) for number, layout in pairs if layout is not None]


def _describe_forward(problem: _Problem, training: bool) -> Handle:
    return described(
        f"{problem.cell.name}_forward",
        FORWARD_TRAINING if training else FORWARD_INFERENCE,
        problem.direction,
        *_layouts(problem, problem.kind, True).ordered(problem.cell.has_cell),
        0,
        reference=True,  # the name of the implementation that is built on matrix products
    )


def _given(problem: _Problem, strides: Shape) -> _Layouts:
    """The layouts in which the caller's arrays are."""
    input = descriptor(problem.sequence, strides, problem.kind)
    return _layouts(problem, problem.kind, False)._replace(input=input)


@cached
def _forward(problem: _Problem, input: Shape, training: bool) -> Primitive:
    given = _given(problem, input)
    arguments = [*_arguments(_INPUTS, given[:6], False), *_arguments(_OUTPUTS, given[6:], True)]
    if training:
        arguments.append(Argument(WORKSPACE, None, True))
    return Primitive(_describe_forward(problem, training), arguments)


@cached
def _backward(problem: _Problem, input: Shape) -> Primitive:
    given, of_given = _given(problem, input), _layouts(problem, F32, False)
    has_cell = problem.cell.has_cell
    made = described(
        f"{problem.cell.name}_backward",
        BACKWARD,
        problem.direction,
        *_layouts(problem, problem.kind, True).ordered(has_cell),
        *_layouts(problem, F32, True).ordered(has_cell),
        RNN_OVERWRITE,
        _describe_forward(problem, True),
        reference=True,
    )
    arguments = [
        *_arguments(_INPUTS, given[:6], False),
        *_arguments(_OUTPUTS, given[6:], False),
        *_arguments(_ARRIVING, of_given[6:], False),
        *_arguments(_LEAVING, of_given[:6], True),
        Argument(WORKSPACE, None),
    ]
    return Primitive(made, arguments)
