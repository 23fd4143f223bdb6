"""How recurrent layers are written into a trace: one operator, with all weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch

from .._core.tensor import Tensor
from ._recording import Recording, plain_of


def recorder(layer: Any, recording: Recording) -> Callable[..., Any]:
    """What runs in place of a layer's `forward` while a trace is recorded."""
    run = type(layer).forward

    def forward(input: Any, hx: Any = None) -> Any:
        if not isinstance(input, Tensor) or input.dim() != 3:
            raise NotImplementedError("jit.trace writes recurrent layers on batches of padded sequences only")
        batch = input.shape[0 if layer.batch_first else 1]
        directions = 2 if layer.bidirectional else 1
        is_lstm = layer.mode == "LSTM"
        if hx is None:
            sizes = [layer.proj_size or layer.hidden_size, layer.hidden_size] if is_lstm else [layer.hidden_size]
            made = [torch.zeros([layer.num_layers * directions, batch, each], dtype=input.dtype) for each in sizes]
            hx = tuple(made) if is_lstm else made[0]
        recording.silent += 1
        try:
            result = run(layer, plain_of(input), plain_of(hx))
        finally:
            recording.silent -= 1
        options = (layer.bias, layer.num_layers, float(layer.dropout), layer.training, layer.bidirectional)
        states = list(hx) if is_lstm else hx
        output, last = result
        flat = (output, *last) if is_lstm else (output, last)
        name = layer.mode.lower()
        recording.emit(name, (input, states, list(layer._flat_weights), *options, layer.batch_first), {}, flat)
        wrapped = recording.wrapped(flat)
        return wrapped[0], wrapped[1:] if is_lstm else wrapped[1]

    return forward


def cell_recorder(cell: Any, recording: Recording) -> Callable[..., Any]:
    """What runs in place of the `forward` of one step's cell."""
    run = type(cell).forward
    kind = {"LSTMCell": "lstm_cell", "GRUCell": "gru_cell"}.get(type(cell).__name__)
    name = kind or f"rnn_{getattr(cell, 'nonlinearity', 'tanh')}_cell"

    def forward(input: Any, hx: Any = None) -> Any:
        if hx is None:
            made = torch.zeros([*input.shape[:-1], cell.hidden_size], dtype=input.dtype)
            hx = (made, made) if name == "lstm_cell" else made
        recording.silent += 1
        try:
            result = run(cell, plain_of(input), plain_of(hx))
        finally:
            recording.silent -= 1
        states = list(hx) if name == "lstm_cell" else hx
        weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
        recording.emit(name, (input, states, *weights), {}, result)
        return recording.wrapped(result)

    return forward
