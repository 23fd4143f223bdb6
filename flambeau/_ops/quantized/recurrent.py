"""Recurrent layers with weights of codes, or of half precision, for floats that are quantized as they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..._core.quantized import QuantizedTensor
from ..linalg.linear import linear as float_linear
from ..pointwise.unary import sigmoid, tanh
from ..random.dropout import dropout
from ..shape.join import cat, stack
from .layers import dynamic_layer

GATES = {"LSTM": 4, "GRU": 3}
"""How many gates a layer has."""


class Weights(NamedTuple):
    """What one direction of one layer multiplies its input and its state by, and adds."""

    w_ih: Any
    w_hh: Any
    b_ih: Any
    b_hh: Any
    dtype: Any
    of_state: Any = None
    """What is made of the state, if it is not a linear map with `w_hh`."""

    def state(self, hidden: Any) -> Any:
        """What the gates get from the hidden state."""
        return linear(hidden, self.w_hh, self.b_hh) if self.of_state is None else self.of_state(hidden)


States = list[Any]
Step = Callable[[Any, States, Weights], States]
"""The new states from what the input has made of itself, the old states and the weights."""


def linear(input: Any, weight: Any, bias: Any) -> Any:
    """`input @ weight.T + bias`: with a weight of codes the input is rounded to codes by its own range."""
    if isinstance(weight, QuantizedTensor):
        return dynamic_layer(float_linear, input, weight, bias, channel=-1)
    return float_linear(input, weight, bias)


def lstm_step(given: Any, states: States, weights: Weights) -> States:
    """The new hidden and cell states."""
    hidden, cell = states
    gates = given + weights.state(hidden)
    let_in, keep, offered, show = gates.chunk(4, 1)
    cell = sigmoid(keep) * cell + sigmoid(let_in) * tanh(offered)
    return [sigmoid(show) * tanh(cell), cell]


def gru_step(given: Any, states: States, weights: Weights) -> States:
    """The new hidden state."""
    (hidden,) = states
    reset, keep, offered = given.chunk(3, 1)
    own_reset, own_keep, own_offered = weights.state(hidden).chunk(3, 1)
    update = sigmoid(keep + own_keep)
    candidate = tanh(offered + sigmoid(reset + own_reset) * own_offered)
    return [(hidden - candidate) * update + candidate]


def rnn_step(given: Any, states: States, weights: Weights, activation: Callable[[Any], Any] = tanh) -> States:
    """The new hidden state of a layer without gates."""
    return [activation(given + weights.state(states[0]))]


def _over_steps(
    steps: Sequence[Any], states: States, weights: Weights, step: Step, backwards: bool
) -> tuple[list[Any], States]:
    """A direction of a layer: what it shows at each step, and its last states.

    The sequences of a batch may end at different steps, the longest first: then a step has fewer rows than the states.
    """
    results: list[Any] = [None] * len(steps)
    lengths = [each.shape[0] for each in steps]
    given = linear(cat(list(steps)), weights.w_ih, weights.b_ih).split(lengths)  # rounded by the range of all steps
    for at in reversed(range(len(steps))) if backwards else range(len(steps)):
        rows = lengths[at]
        new = step(given[at], [each[:rows] for each in states], weights)
        whole = rows == states[0].shape[0]
        states = new if whole else [cat([each, old[rows:]]) for each, old in zip(new, states, strict=True)]
        results[at] = new[0]
    return results, states


def over_layers(
    steps: Sequence[Any], states: States, weights: Sequence[Weights], step: Step, directions: int, dropped: float
) -> tuple[list[Any], States]:
    """All layers: what the last shows at each step, and the last states of all, one row for each direction."""
    found: list[States] = []
    for layer in range(len(weights) // directions):
        sides = []
        for direction in range(directions):
            at = layer * directions + direction
            results, last = _over_steps(steps, [each[at] for each in states], weights[at], step, direction == 1)
            sides.append(results)
            found.append(last)
        steps = [cat(list(each), 1) for each in zip(*sides, strict=True)] if directions == 2 else sides[0]
        if dropped and layer + 1 < len(weights) // directions:
            steps = [dropout(each, dropped) for each in steps]
    return list(steps), [stack([each[at] for each in found]) for at in range(len(states))]
