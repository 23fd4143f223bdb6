"""Recurrent layers, also over packed sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._graph import Graph, Value
from .._sizes import Size
from ._table import Result, Unsupported, converter

_GATES = {"lstm_layer": (0, 3, 1, 2), "gru_layer": (1, 0, 2), "rnn_layer": (0,)}
"""The order in which ONNX wants the gates."""


def _arranged(g: Graph, rows: Value, order: Sequence[int], width: int) -> Value:
    """The rows of the gates in another order."""
    if len(order) == 1:
        return rows
    parts = g.ops("Split", len(order), rows, g.ints([width] * len(order)), axis=0)
    return g.op("Concat", *[parts[each] for each in order], axis=0)


def _recurrent(
    g: Graph, call: Result, input: Value, states: Sequence[Value], params: Sequence[Value | None], sizes: Any,
    reverse: bool, kind: str, **options: Any,
) -> list[Value]:  # fmt: skip
    """The output of each step and the last states, in the shapes that the op has."""
    w_ih, w_hh, b_ih, b_hh = params
    assert w_ih is not None
    assert w_hh is not None
    width = int((w_hh.shape or ())[1])
    order = _GATES[call.op]
    weights = [g.unsqueeze(_arranged(g, each, order, width), 0) for each in (w_ih, w_hh)]
    biases = None
    if b_ih is not None and b_hh is not None:
        both = g.op("Concat", *[_arranged(g, each, order, width) for each in (b_ih, b_hh)], axis=0)
        biases = g.unsqueeze(both, 0)
    one_step = input.rank == 2 and isinstance(sizes, (tuple, list)) and len(sizes) == 1
    packing = _Packing(sizes) if input.rank == 2 and not one_step else None
    steps = g.unsqueeze(input, 0) if one_step else input if packing is None else packing.padded(g, input)
    lengths = None if packing is None else g.const(packing.lengths.astype(np.int32))
    starts = [each if each.rank == 3 else g.unsqueeze(each, 0) for each in states]
    count = 1 + len(states)
    output, *last = g.ops(
        kind, count, steps, *weights, biases, lengths, *starts, hidden_size=width,
        direction="reverse" if reverse else "forward", **options,
    )  # fmt: skip
    output = g.squeeze(output, 0, 1) if one_step else g.squeeze(output, 1)
    if packing is not None:
        output = packing.packed(g, output)
    return [
        output,
        *(g.squeeze(each, 0) if state.rank == 2 else each for each, state in zip(last, states, strict=True)),
    ]


class _Packing:
    """Where the rows of a packed sequence stand in the padded one."""

    def __init__(self, sizes: Any) -> None:
        if not isinstance(sizes, (tuple, list)) or any(isinstance(each, Size) for each in sizes):
            raise Unsupported("packed sequences whose lengths depend on the sizes of the inputs")
        self.sizes = [int(each) for each in sizes]
        self.batch = self.sizes[0]
        self.places = np.array(
            [step * self.batch + row for step, size in enumerate(self.sizes) for row in range(size)], np.int64
        )
        self.lengths = np.array([sum(size > row for size in self.sizes) for row in range(self.batch)], np.int64)

    def padded(self, g: Graph, rows: Value) -> Value:
        width = int((rows.shape or ())[1])
        zeros = g.const(np.zeros((len(self.sizes) * self.batch, width), rows.dtype))
        filled = g.op("ScatterND", zeros, g.const(self.places[:, None]), rows)
        return g.reshape(filled, [len(self.sizes), self.batch, width])

    def packed(self, g: Graph, steps: Value) -> Value:
        merged = g.op("Reshape", steps, g.const(np.array([len(self.sizes) * self.batch, -1], np.int64)))
        return g.op("Gather", merged, g.const(self.places), axis=0)


@converter("lstm_layer")
def lstm_layer(
    g: Graph, call: Result, input: Value, hx: Value, cx: Value, w_ih: Value, w_hh: Value, b_ih: Value | None,
    b_hh: Value | None, w_hr: Value | None, sizes: Any, reverse: bool,
) -> list[Value]:  # fmt: skip
    params = (w_ih, w_hh, b_ih, b_hh)
    if w_hr is not None:
        return _projected(g, input, hx, cx, params, w_hr, sizes, reverse)
    return _recurrent(g, call, input, (hx, cx), params, sizes, reverse, "LSTM")


@converter("gru_layer")
def gru_layer(
    g: Graph, call: Result, input: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Value | None,
    b_hh: Value | None, sizes: Any, reverse: bool,
) -> list[Value]:  # fmt: skip
    params = (w_ih, w_hh, b_ih, b_hh)
    return _recurrent(g, call, input, (hx,), params, sizes, reverse, "GRU", linear_before_reset=1)


@converter("rnn_layer")
def rnn_layer(
    g: Graph, call: Result, input: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Value | None,
    b_hh: Value | None, sizes: Any, reverse: bool, relu: bool,
) -> list[Value]:  # fmt: skip
    params = (w_ih, w_hh, b_ih, b_hh)
    activations = ["Relu" if relu else "Tanh"]
    return _recurrent(g, call, input, (hx,), params, sizes, reverse, "RNN", activations=activations)


def _projected(
    g: Graph, input: Value, hx: Value, cx: Value, params: Sequence[Value | None], w_hr: Value, sizes: Any,
    reverse: bool,
) -> list[Value]:  # fmt: skip
    """Step by step: ONNX's LSTM does not project its state."""
    if input.rank == 2 or not isinstance(sizes, (tuple, list)):
        raise Unsupported("a projected LSTM over packed sequences, or over a number of steps that is not fixed")
    w_ih, w_hh, b_ih, b_hh = params
    turned = [g.transpose(each, [1, 0]) for each in (w_ih, w_hh, w_hr) if each is not None]
    hidden, cell = (each if each.rank == 2 else g.squeeze(each, 0) for each in (hx, cx))
    outputs: list[Value] = []
    for step in range(len(sizes)):
        place = len(sizes) - 1 - step if reverse else step
        gates = g.op("MatMul", g.op("Gather", input, g.scalar(place), axis=0), turned[0])
        gates = g.op("Add", gates, g.op("MatMul", hidden, turned[1]))
        for bias in (b_ih, b_hh):
            gates = gates if bias is None else g.op("Add", gates, bias)
        enter, forget, new, leave = g.ops("Split", 4, gates, axis=1, num_outputs=4)
        kept = g.op("Mul", g.op("Sigmoid", forget), cell)
        cell = g.op("Add", kept, g.op("Mul", g.op("Sigmoid", enter), g.op("Tanh", new)))
        shown = g.op("Mul", g.op("Sigmoid", leave), g.op("Tanh", cell))
        hidden = g.op("MatMul", shown, turned[2])
        outputs.append(g.unsqueeze(hidden, 0))
    if reverse:
        outputs.reverse()
    last = [each if state.rank == 2 else g.unsqueeze(each, 0) for each, state in ((hidden, hx), (cell, cx))]
    return [g.op("Concat", *outputs, axis=0), *last]


@converter("packed")
def packed(g: Graph, call: Result, input: Value, sizes: Any) -> Value:
    packing = _Packing(sizes)
    batch = (input.shape or (0, 0))[1]
    places = np.concatenate([step * int(batch) + np.arange(size) for step, size in enumerate(packing.sizes)])
    rest = list(input.shape or ())[2:]
    rows = g.reshape(input, [-1, *rest])
    return g.op("Gather", rows, g.const(places.astype(np.int64)), axis=0)


@converter("padded")
def padded(g: Graph, call: Result, data: Value, sizes: Any, length: int, batch: int, padding: Any) -> Value:
    packing = _Packing(sizes)
    rest = list(data.shape or ())[1:]
    places = np.concatenate([step * int(batch) + np.arange(size) for step, size in enumerate(packing.sizes)])
    base = np.full((int(length) * int(batch), *[int(each) for each in rest]), padding, data.dtype)
    filled = g.op("ScatterND", g.const(base), g.const(places.astype(np.int64)[:, None]), data)
    return g.reshape(filled, call.shape)
