"""A recurrent network of several layers: one op on devices that run it whole, layer by layer everywhere else.

What is written twice in other libraries, a network for each, is written once here: the whole op's reference and its
second derivatives are the layers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._backends import arrays as array_functions
from ..._core.geometry.recurrence import Recurrence
from ..._core.modes import THREAD, recording
from ..._core.slots import SLOTS
from ..._core.tensor import PLAIN_TYPES
from ..._dispatch.composite import composite
from ..._dispatch.dispatch import Array, several
from ..random.dropout import dropout as dropped
from ..shape.join import cat, stack
from .recurrent_cells import gru_layer, lstm_layer, rnn_layer


class _Library(NamedTuple):
    """What tensors and arrays have under different names."""

    run: Callable[..., tuple[Any, ...]]
    """Runs an op of a layer."""
    rows: Callable[[Any], Sequence[Any]]
    join: Callable[[list[Any], int], Any]
    stack: Callable[[list[Any], int], Any]


_TENSORS = _Library(lambda layer, *args: layer(*args), lambda tensor: tensor.unbind(0), cat, stack)
_ARRAYS = _Library(lambda layer, *args: layer.kernel(*args), list, np.concatenate, np.stack)


def network(
    sequence: Any, states: Sequence[Any], params: list[Any], recurrence: Recurrence, dropout: float, batch_first: bool
) -> tuple[Any, ...]:
    """The output of the last layer, and the last states of all layers.

    `batch_first`: the output has the batch before the steps; the sequence has it after them in any case.
    """
    whole = not dropout and _runs_whole(sequence, states, params, recurrence)
    if whole:
        output, *ends = _as_one_op(sequence, states, params, recurrence)
    else:
        output, *ends = _by_layers(_TENSORS, sequence, states, params, recurrence, dropout)
    if batch_first:
        # What is kept for the backward pass must not be changed, and has a view. Elsewhere the output is no view, as in
        # PyTorch: what users hook and change in place follows other rules where it is one.
        output = output.transpose(0, 1) if whole or recurrence.cell == "lstm" else output.transpose_(0, 1)
    return output, *ends


def _as_one_op(sequence: Any, states: Sequence[Any], params: list[Any], recurrence: Recurrence) -> Sequence[Any]:
    count, modes = recurrence.groups, THREAD.modes
    hx, cx = (*[each if each.shape[0] == count else each[:count] for each in states], None)[:2]
    keeps = modes.grad and not modes.inference and any(each.requires_grad for each in (sequence, *states, *params))
    output, *ends = _network(sequence, hx, cx, params, recurrence, keeps)
    return output, *ends[: len(states)]


def _runs_whole(input: Any, states: Sequence[Any], params: list[Any], recurrence: Recurrence) -> bool:
    modes = THREAD.modes
    if modes.interpreters or modes.forward_level >= 0:  # they know the layers
        return False
    if any(type(each) not in PLAIN_TYPES or each._kind.indirect for each in (input, *states, *params)):
        return False
    arrays = [each._array for each in states]
    return bool(
        array_functions.runs_recurrent_network(input._array, arrays, [each._array for each in params], recurrence)
    )


# ----- layer by layer -------------------------------------------------------------------------------------------------


def _by_layers(
    lib: _Library, sequence: Any, states: Sequence[Any], params: Sequence[Any], recurrence: Recurrence, dropout: float
) -> tuple[Any, ...]:
    count, directions = recurrence.groups, recurrence.directions
    each = len(params) // count
    groups = [list(params[at : at + each]) for at in range(0, len(params), each)]
    initial = _initial(lib, states, count)
    last: list[tuple[Any, ...]] = []
    for number in range(0, count, directions):
        if number and dropout:
            sequence = dropped(sequence, dropout)
        outputs = []
        for at in range(number, number + directions):
            state = [own[at] for own in initial]
            output, *ends = _layer(lib, sequence, state, groups[at], recurrence, at > number)
            outputs.append(output)
            last.append(tuple(ends))
        sequence = outputs[0] if directions == 1 else lib.join(outputs, -1)
    if count == 1:
        return sequence, *last[0]
    return sequence, *[lib.stack(list(own), 0) for own in zip(*last, strict=True)]


def _initial(lib: _Library, states: Sequence[Any], count: int) -> list[Any]:
    """The initial states of each layer and direction; those of a single one keep that dimension."""
    if count > 1:
        return [lib.rows(each) for each in states]
    return [(each if each.shape[0] == 1 else each[:1],) for each in states]


def _layer(
    lib: _Library, sequence: Any, state: list[Any], params: list[Any], recurrence: Recurrence, reverse: bool
) -> tuple[Any, ...]:
    """The output of a layer in one direction, and its last states."""
    cell, sizes = recurrence.cell, recurrence.sizes
    if not recurrence.has_biases:
        params = [*params[:2], None, None, *params[2:]]
    if cell == "lstm":
        projected = params if len(params) == 5 else [*params, None]
        return lib.run(lstm_layer, sequence, *state, *projected, sizes, reverse)[:3]
    if cell == "gru":
        return lib.run(gru_layer, sequence, *state, *params, sizes, reverse)[:2]
    return lib.run(rnn_layer, sequence, *state, *params, sizes, reverse, cell == "rnn_relu")[:2]


# ----- as one op ------------------------------------------------------------------------------------------------------


@composite("recurrent_network_backward")
def _network_backward(
    grads: list[Any],
    needed: tuple[bool, ...],
    input: Any,
    hx: Any,
    cx: Any,
    params: list[Any],
    recurrence: Recurrence,
    output: Any,
    weights: Any,
    reserve: Any,
) -> list[Any]:
    """By the layers, which are run once more: they have derivatives of every order."""
    recorded = THREAD.modes.grad
    with recording(True):
        # Each stands for itself: one tensor may be two of the inputs.
        own = [
            None if each is None else each.view_as(each) if recorded else each.detach().requires_grad_()
            for each in (input, hx, cx, *params)
        ]
        states = own[1:2] if cx is None else own[1:3]
        results = _by_layers(_TENSORS, own[0], states, own[3:], recurrence, 0.0)
    arriving = [(result, grad) for result, grad in zip(results, grads, strict=False) if grad is not None]
    wanted = [each for each, need in zip(own, needed, strict=True) if need]
    found = iter(
        SLOTS.gradients(
            [result for result, _ in arriving],
            wanted,
            [grad for _, grad in arriving],
            create_graph=recorded,
            allow_unused=True,
        )
    )
    return [next(found) if need else None for need in needed]


@functools.wraps(_network_backward, updated=())
def _network_formula(*args: Any) -> list[Any]:
    arguments = list(args)
    running = THREAD.modes.backward_pass
    if running is None or running.keep_graph:
        arguments[-1] = arguments[-1].clone()  # a backward pass changes the reserve, and there may be another one
    return _network_backward(*arguments)


@several(
    "CudnnRnnBackward0",
    joint=_network_formula,
    op_name="recurrent_network",
    results=("output", "hidden", "cell", "weights", "reserve"),
)
def _network(
    input: Array, hx: Array, cx: Array | None, params: list[Array], recurrence: Recurrence, keeps: bool
) -> tuple[Array, ...]:
    """The output, the last states and cells, and two pieces of memory.

    A backend that `keeps` what the derivative needs does so in these.
    """
    states = [hx] if cx is None else [hx, cx]
    output, *ends = _by_layers(_ARRAYS, input, states, params, recurrence, 0.0)
    nothing = np.empty(0, np.uint8, like=input)
    return (output, *ends, *[np.empty(0, input.dtype, like=input)] * (2 - len(ends)), nothing, nothing)
