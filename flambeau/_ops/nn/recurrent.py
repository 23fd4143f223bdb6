"""Recurrent networks: layers upon layers over a sequence, padded or packed, and single steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..._core.dtype import LEGACY_NAMES
from ..._core.geometry.recurrence import Recurrence
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import LOWER, by_state, on
from ..._dispatch.public.registry import public
from .recurrent_cells import gru_layer, lstm_layer, rnn_layer
from .recurrent_network import network

_PADDED = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
_PACKED = ("input", "batch_sizes", *_PADDED[1:-1])


class _Call(NamedTuple):
    """The arguments of a network; `batch_sizes` belongs to a packed sequence, `batch_first` to a padded one."""

    input: Tensor
    hx: Any
    params: Any
    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool
    batch_first: bool = False
    batch_sizes: Any = None


def _bound(name: str, input: Tensor | None, args: tuple[Any, ...], options: dict[str, Any], states: int) -> _Call:
    """The arguments by name: the second one says whether the sequence is packed."""
    place = 0 if states == 2 else 1  # what a padded sequence's initial state or parameters, in a list, tell apart
    if input is None:
        input = options.pop("data", None)
    packed = "batch_sizes" in options or (len(args) > place and isinstance(args[place], Tensor))
    names = _PACKED if packed else _PADDED
    given = dict(zip(names, (input, *args), strict=False))
    if len(args) >= len(names) or given.keys() & options.keys() or {*given, *options} != {*names}:
        raise TypeError(
            f"{name}() received an invalid combination of arguments: expected (Tensor {', '.join(_PADDED)}) or, for a "
            f"packed sequence, (Tensor {', '.join(_PACKED)}), but got {1 + len(args)} arguments by position and "
            f"{sorted(options)} by name"
        )
    call = _Call(**given, **options)
    if states == 1 and not isinstance(call.hx, Tensor):
        raise TypeError(f"{name}(): argument 'hx' must be Tensor, not {type(call.hx).__name__}")
    if packed and not isinstance(call.batch_sizes, Tensor):
        raise TypeError(f"{name}(): argument 'batch_sizes' must be Tensor, not {type(call.batch_sizes).__name__}")
    return call


def _parameters(call: _Call, each: int) -> list[Any]:
    """The parameters of the layers and directions that there are, `each` of them having so many."""
    params = list(call.params)
    if len(params) % each:
        raise RuntimeError(
            f"got an incorrect number of RNN parameters: {len(params)} is no multiple of {each}, as many as a layer has"
        )
    count, groups = call.num_layers * (2 if call.bidirectional else 1), len(params) // each
    if groups < count:
        if call.bidirectional and groups % 2:
            raise RuntimeError("Odd number of params or hiddens given to a bidirectional RNN")
        raise RuntimeError(
            f"Expected more parameters in stacked_rnn: {count} layers and directions, but parameters for {groups}"
        )
    return params[: count * each]


def _sizes(call: _Call, input: Any) -> tuple[int, ...]:
    """How many rows each step has."""
    if call.batch_sizes is not None:
        if call.batch_sizes.dim() != 1:
            raise RuntimeError(f"batch_sizes must have one dimension, but it has {call.batch_sizes.dim()}")
        sizes = tuple(call.batch_sizes.tolist())
        if list(sizes) != sorted(sizes, reverse=True) or sum(sizes) != input.shape[0]:
            raise RuntimeError(
                f"batch_sizes must not increase and must add up to the {input.shape[0]} rows of the packed sequence, "
                f"but they are {list(sizes)}"
            )
    else:
        if input.dim() != 3:
            raise IndexError(f"Dimension out of range: input has {input.dim()} dimensions, expected 3")
        sizes = (input.shape[1],) * input.shape[0]
    if not sizes:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    return sizes


def _of_one_dtype(input: Tensor, others: Sequence[Any]) -> list[Any]:
    """States and parameters in the dtype of the input, which they must have, unless autocast is on."""
    return [each if each is None or each._kind is input._kind else _cast(each, input) for each in others]


def _cast(tensor: Tensor, input: Tensor) -> Tensor:
    from ..._dispatch.arguments.autocast import is_autocast_enabled

    if tensor.device != input.device:
        raise RuntimeError(
            f"Input and parameter tensors are not at the same device, found input tensor at {input.device} and "
            f"parameter tensor at {tensor.device}"
        )
    if not (input.device.type != "meta" and is_autocast_enabled(input.device.type)):
        names = LEGACY_NAMES[input.dtype], LEGACY_NAMES[tensor.dtype]
        raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {names[0]} and {names[1]}")
    return tensor.to(input.dtype)


def _check_layer(shape: tuple[int, ...], batch: int, hidden: Any, params: Sequence[Any]) -> None:
    """The shapes that meet in one layer: its input has `shape`."""
    w_ih, w_hh = params[:2]
    if shape[-1] != w_ih.shape[1]:
        rows = f"{math.prod(shape[:-1])}x{shape[-1]}"
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows} and {w_ih.shape[1]}x{w_ih.shape[0]}): the input's "
            "last dimension is not the input size of the layer"
        )
    if hidden.shape[-1] != w_hh.shape[1]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({hidden.shape[-2]}x{hidden.shape[-1]} and "
            f"{w_hh.shape[1]}x{w_hh.shape[0]}): the initial state's last dimension is not the hidden size of the layer"
        )
    if hidden.shape[-2] != batch:
        raise RuntimeError(
            f"The size of tensor a ({hidden.shape[-2]}) must match the size of tensor b ({batch}) at non-singleton "
            "dimension 0: the initial state and the input have different batch sizes"
        )


def _run(call: _Call, states: Sequence[Any], params: list[Any], each: int, cell: str) -> tuple[Tensor, ...]:
    """All layers, with `each` parameters in every one: the last one's output, and the last states of all of them."""
    sequence = call.input.transpose(0, 1) if call.batch_first else call.input
    directions = 2 if call.bidirectional else 1
    recurrence = Recurrence(cell, call.num_layers, directions, bool(call.has_biases), _sizes(call, sequence))
    _check_states(states, recurrence.groups)
    params = _of_one_dtype(sequence, params)
    states = _of_one_dtype(sequence, states)
    shape = tuple(sequence.shape)
    for at in range(recurrence.groups):
        if at == directions:
            shape = (*shape[:-1], directions * states[0].shape[-1])
        _check_layer(shape, recurrence.sizes[0], states[0], params[at * each : (at + 1) * each])
    dropout = call.dropout if call.train and call.num_layers > 1 else 0.0
    if not 0 <= dropout <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout:g}")
    return network(sequence, states, params, recurrence, dropout, call.batch_first)


def _check_states(states: Sequence[Any], count: int) -> None:
    layers = min(each.shape[0] for each in states)
    if layers < count:
        raise RuntimeError(
            f"Expected more hidden states in stacked_rnn: {count} layers and directions, but {layers} states"
        )


# ----- networks ----------------------------------------------------------------------------------------------------


@public(method=False, autocast=LOWER)
def lstm(input: Tensor | None = None, *args: Any, **options: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Long short-term memory: `lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
    batch_first)`, or for a packed sequence `lstm(data, batch_sizes, hx, params, ...)` without the last one.

    `hx` is the pair of initial states and cells. The result is the output, the last states and the last cells.
    """
    call = _bound("lstm", input, args, options, 2)
    if len(call.hx) != 2:
        raise RuntimeError(f"lstm expects two hidden states, the states and the cells, but got {len(call.hx)}")
    hidden, cell = call.hx
    projected = hidden.shape[-1] != cell.shape[-1]
    each = (5 if projected else 4) - (0 if call.has_biases else 2)
    output, last_hidden, last_cell = _run(call, (hidden, cell), _parameters(call, each), each, "lstm")
    return output, last_hidden, last_cell


def _of_one_state(
    cell: str, input: Tensor | None, args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Tensor, Tensor]:
    """A network whose layers have no cells beside their states."""
    call = _bound(cell, input, args, options, 1)
    each = 4 if call.has_biases else 2
    output, last = _run(call, (call.hx,), _parameters(call, each), each, cell)
    return output, last


@public(method=False, autocast=on(cpu=by_state, cuda=LOWER))
def gru(input: Tensor | None = None, *args: Any, **options: Any) -> tuple[Tensor, Tensor]:
    """Gated recurrent units; arguments as in `lstm`, with one initial state. The output and the last states."""
    return _of_one_state("gru", input, args, options)


@public(method=False, autocast=LOWER)
def rnn_tanh(input: Tensor | None = None, *args: Any, **options: Any) -> tuple[Tensor, Tensor]:
    """A plain recurrent network with `tanh`; arguments as in `gru`."""
    return _of_one_state("rnn_tanh", input, args, options)


@public(method=False, autocast=LOWER)
def rnn_relu(input: Tensor | None = None, *args: Any, **options: Any) -> tuple[Tensor, Tensor]:
    """A plain recurrent network with `relu`; arguments as in `gru`."""
    return _of_one_state("rnn_relu", input, args, options)


# ----- single steps ------------------------------------------------------------------------------------------------


def _size(matrix: Any, dim: int) -> int:
    shape: tuple[int, ...] = matrix._array.shape
    if len(shape) <= dim:
        raise IndexError(f"Dimension out of range: a cell takes matrices, but got the shape {list(shape)}")
    return shape[dim]


def _check_step(input: Any, states: Sequence[Any], w_ih: Any, w_hh: Any) -> tuple[int, ...]:
    """The sizes of a sequence of one step."""
    hidden_size = w_hh._array.shape[1]
    shape = input._array.shape
    batch, width = shape if len(shape) == 2 else (_size(input, 0), _size(input, 1))
    if width != w_ih._array.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {width} expected {w_ih._array.shape[1]}")
    for number, state in enumerate(states):
        shape = state._array.shape
        rows = shape[0] if len(shape) == 2 else _size(state, 0)
        if batch != rows:
            raise RuntimeError(f"Input batch size {batch} doesn't match hidden{number} batch size {rows}")
        columns = shape[1] if len(shape) == 2 else _size(state, 1)
        if columns != hidden_size:
            raise RuntimeError(f"hidden{number} has inconsistent hidden_size: got {columns}, expected {hidden_size}")
    for each in (input, *states):
        if each._array.ndim != 2:
            raise RuntimeError(f"a cell takes matrices, but got the shape {list(each._array.shape)}")
    return (batch,)


@public(method=False, autocast=on(cpu=by_state, cuda=LOWER))
def lstm_cell(
    input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """One step of long short-term memory: the next state and cell."""
    if len(hx) != 2:
        raise RuntimeError(f"lstm_cell expects two hidden states, a state and a cell, but got {len(hx)}")
    sizes = _check_step(input, hx, w_ih, w_hh)
    hidden, cell, w_ih, w_hh, b_ih, b_hh = _of_one_dtype(input, (*hx, w_ih, w_hh, b_ih, b_hh))
    _, hidden, cell, *_ = lstm_layer(input, hidden, cell, w_ih, w_hh, b_ih, b_hh, None, sizes, False)
    return hidden, cell


@public(method=False, autocast=on(cpu=by_state, cuda=LOWER))
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of gated recurrent units: the next state."""
    sizes = _check_step(input, (hx,), w_ih, w_hh)
    hx, w_ih, w_hh, b_ih, b_hh = _of_one_dtype(input, (hx, w_ih, w_hh, b_ih, b_hh))
    return gru_layer(input, hx, w_ih, w_hh, b_ih, b_hh, sizes, False)[1]


@public(method=False, autocast=LOWER)
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of a plain network: `tanh` of the sum of both products."""
    sizes = _check_step(input, (hx,), w_ih, w_hh)
    hx, w_ih, w_hh, b_ih, b_hh = _of_one_dtype(input, (hx, w_ih, w_hh, b_ih, b_hh))
    return rnn_layer(input, hx, w_ih, w_hh, b_ih, b_hh, sizes, False, False)[1]


@public(method=False, autocast=LOWER)
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of a plain network: `relu` of the sum of both products."""
    sizes = _check_step(input, (hx,), w_ih, w_hh)
    hx, w_ih, w_hh, b_ih, b_hh = _of_one_dtype(input, (hx, w_ih, w_hh, b_ih, b_hh))
    return rnn_layer(input, hx, w_ih, w_hh, b_ih, b_hh, sizes, False, True)[1]
