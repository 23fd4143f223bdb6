"""Recurrent networks of several layers as a whole, by cuDNN. None: it is not there, or does not do it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._core.arrays.quick import name_of
from ...._core.geometry.recurrence import GATES, Recurrence
from ...._core.process.gpu_choices import CHOICES
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..arrays.array import DeviceArray, dense, empty, nothing, over, zeros
from ..cudnn.convolutions import TYPES
from ..cudnn.descriptors import Refused, library
from ..cudnn.recurrent import Description, Network
from ..runtime.driver import driver

_BYTES = np.dtype(np.uint8)
_networks: dict[Description, Network | None] = {}


def serves(
    input: DeviceArray, states: Sequence[DeviceArray], params: Sequence[DeviceArray], recurrence: Recurrence
) -> bool:
    """Whether the library runs such a network."""
    name = name_of(input.form.dtype)
    if not CHOICES.uses_library or name not in TYPES or library() is None:
        return False
    if REPRODUCIBILITY.level is not None:  # its products run side by side, with memory that they share
        return False
    if name == "bfloat16" and recurrence.sizes[0] != recurrence.sizes[-1]:  # cuDNN 9.19 computes nonsense
        return False
    if not input.form.size or not all(each.form.size for each in (*states, *params)):
        return False
    return _network(_described(input, states[0], params, recurrence)) is not None


def _described(
    input: DeviceArray, hx: DeviceArray, params: Sequence[DeviceArray], recurrence: Recurrence
) -> Description:
    width = params[0].form.shape[0] // GATES[recurrence.cell]
    return Description(
        recurrence.cell, name_of(input.form.dtype), input.form.shape[-1], width, hx.form.shape[-1], recurrence.layers,
        recurrence.directions, recurrence.has_biases, CHOICES.shortened_networks,
    )  # fmt: skip


def _network(what: Description) -> Network | None:
    try:
        return _networks[what]
    except KeyError:
        pass
    try:
        found = Network(what)
    except Refused:
        found = None
    _networks[what] = found
    return found


def forward(
    input: DeviceArray, hx: DeviceArray, cx: DeviceArray | None, params: list[DeviceArray], recurrence: Recurrence,
    keeps: bool,
) -> tuple[DeviceArray, ...] | None:  # fmt: skip
    """The op: output, last states and cells, the parameters side by side, and what the derivative needs."""
    what = _described(input, hx, params, recurrence)
    found = _network(what)
    if found is None:
        return None
    try:
        return _forward(found, input, hx, cx, params, recurrence, keeps)
    except Refused:
        _networks[what] = None
        return None


def _forward(
    found: Network, input: DeviceArray, hx: DeviceArray, cx: DeviceArray | None, params: list[DeviceArray],
    recurrence: Recurrence, keeps: bool,
) -> tuple[DeviceArray, ...]:  # fmt: skip
    what, sequences = found.what, found.sequences(recurrence)
    input, hx = dense(input), dense(hx)
    dtype = input.form.dtype
    output = empty((*input.form.shape[:-1], what.directions * what.state), dtype)
    last = empty(hx.form.shape, dtype)
    none = nothing(dtype)
    first_cell, last_cell = (none, none) if cx is None else (dense(cx), empty(cx.form.shape, dtype))
    weights = _packed(found, params)
    reserve = empty((sequences.reserve_bytes,), _BYTES) if keeps else nothing(_BYTES)
    sequences.forward(
        input.pointer, output.pointer, (hx.pointer, last.pointer), (first_cell.pointer, last_cell.pointer),
        (weights.pointer, found.weight_bytes), reserve.pointer,
    )  # fmt: skip
    return output, last, last_cell, weights if keeps else nothing(_BYTES), reserve


def _packed(network: Network, params: Sequence[DeviceArray]) -> DeviceArray:
    """The parameters as the library wants them."""
    weights = empty((network.weight_bytes,), _BYTES)
    copy = driver().copy
    for param, place in zip(params, network.places(weights.pointer), strict=True):
        source = dense(param)
        copy(weights.pointer + place, source.pointer, source.form.nbytes)
    return weights


def backward(
    grads: list[Any], needed: tuple[bool, ...], input: DeviceArray, hx: DeviceArray, cx: DeviceArray | None,
    params: list[DeviceArray], recurrence: Recurrence, output: DeviceArray, weights: DeviceArray, reserve: DeviceArray,
) -> list[DeviceArray | None] | None:  # fmt: skip
    """The gradients of input, states and parameters."""
    found = _network(_described(input, hx, params, recurrence))
    if found is None or not reserve.form.size:
        return None
    sequences = found.sequences(recurrence)
    if sequences.reserve_bytes != reserve.form.size:  # a switch was set since
        return None
    input, hx = dense(input), dense(hx)
    dtype = input.form.dtype
    none = nothing(dtype)
    of_output = zeros(output.form.shape, dtype) if grads[0] is None else dense(grads[0])
    of_last = [none if each is None else dense(each) for each in grads[1:3]]
    of_input, of_hx = empty(input.form.shape, dtype), empty(hx.form.shape, dtype)
    first_cell, of_cx = (none, none) if cx is None else (dense(cx), empty(cx.form.shape, dtype))
    of_weights = zeros((found.weight_bytes,), _BYTES) if any(needed[3:]) else none
    sequences.backward(
        (input.pointer, of_input.pointer), (dense(output).pointer, of_output.pointer),
        (hx.pointer, of_last[0].pointer, of_hx.pointer), (first_cell.pointer, of_last[1].pointer, of_cx.pointer),
        (weights.pointer, found.weight_bytes), of_weights.pointer, reserve.pointer,
    )  # fmt: skip
    made: list[DeviceArray | None] = [of_input, of_hx, of_cx]
    if any(needed[3:]):
        for param, place in zip(params, found.places(of_weights.pointer), strict=True):
            made.append(over(of_weights.memory, of_weights.pointer + place, param.form.shape, dtype))
    else:
        made += [None] * len(params)
    return [each if need else None for each, need in zip(made, needed, strict=True)]
