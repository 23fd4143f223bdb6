"""Recurrent operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.nn import functional as F

from ._table import NotRead, Operator, reader

_ACTIVATIONS: dict[str, Callable[[Tensor], Any]] = {
    "relu": flambeau.relu, "tanh": flambeau.tanh, "sigmoid": flambeau.sigmoid, "softsign": F.softsign,
    "softplus": F.softplus, "hardsigmoid": lambda x: flambeau.clamp(0.2 * x + 0.5, 0.0, 1.0), "elu": F.elu,
    "leakyrelu": F.leaky_relu,
}  # fmt: skip


def _activations(node: Operator, directions: int, default: Sequence[str]) -> list[list[Callable[[Tensor], Any]]]:
    names = node.get("activations") or list(default) * directions
    if any(name.lower() not in _ACTIVATIONS for name in names) or node.get("activation_alpha"):
        raise NotRead(f"the activations {', '.join(names)}")
    found = [_ACTIVATIONS[name.lower()] for name in names]
    return [found[at : at + len(default)] for at in range(0, len(found), len(default))]


Step = Callable[..., tuple[Any, ...]]


def _walk(
    x: Tensor, lengths: Tensor | None, states: Sequence[Tensor], step: Step, reverse: bool
) -> tuple[Any, list[Any]]:
    """Run `step` over the time; a sequence that has ended keeps its state and gives zeros."""
    steps, current, outputs = x.shape[0], list(states), []
    for position in range(steps):
        place: Any = steps - 1 - position if reverse else position
        new = step(x[place], *current)
        if lengths is not None:
            alive = (lengths > place).unsqueeze(1)
            outputs.append(flambeau.where(alive, new[0], 0.0))
            current = [flambeau.where(alive, fresh, old) for fresh, old in zip(new, current, strict=True)]
        else:
            outputs.append(new[0])
            current = list(new)
    if reverse:
        outputs.reverse()
    return flambeau.stack(outputs) if outputs else x.new_zeros((0, *current[0].shape)), current


def _recurrent(
    node: Operator, x: Tensor, w: Tensor, r: Tensor, b: Any, lengths: Any, states: Sequence[Any], gates: int,
    make_step: Callable[..., Step], default: Sequence[str],
) -> Any:  # fmt: skip
    if node.get("layout", 0):
        x = x.transpose(0, 1)
        states = [None if each is None else each.transpose(0, 1) for each in states]
    directions, width = w.shape[0], r.shape[2]
    functions = _activations(node, directions, default)
    way = node.get("direction", "forward")
    outputs, ends = [], []
    for number in range(directions):
        bias = x.new_zeros(2 * gates * width) if b is None else b[number]
        start = [x.new_zeros(x.shape[1], width) if each is None else each[number] for each in states]
        step = make_step(node, w[number], r[number], bias, width, functions[number])
        output, last = _walk(x, lengths, start, step, way == "reverse" or number == 1)
        outputs.append(output)
        ends.append(last)
    sequence = flambeau.stack(outputs, 1)
    last_states = [flambeau.stack(list(each)) for each in zip(*ends, strict=True)]
    if node.get("layout", 0):
        sequence = sequence.permute(2, 0, 1, 3)
        last_states = [each.transpose(0, 1) for each in last_states]
    return (sequence, *last_states)


def _clipped(node: Operator, value: Any) -> Any:
    bound = node.get("clip")
    return value if bound is None else value.clamp(-bound, bound)


def _rnn_step(node: Operator, w: Any, r: Any, b: Any, width: int, functions: Any) -> Step:
    def step(x: Any, hidden: Any) -> tuple[Any, ...]:
        total = flambeau.matmul(x, w.t()) + flambeau.matmul(hidden, r.t()) + b[:width] + b[width:]
        return (functions[0](_clipped(node, total)),)

    return step


@reader("RNN")
def rnn(node: Operator, x: Tensor, w: Tensor, r: Tensor, b: Any = None, lengths: Any = None, h: Any = None) -> Any:
    return _recurrent(node, x, w, r, b, lengths, [h], 1, _rnn_step, ["Tanh"])


def _gru_step(node: Operator, w: Any, r: Any, b: Any, width: int, functions: Any) -> Step:
    wz, wr, wh = w.split(width)
    rz, rr, rh = r.split(width)
    bz, br, bh, cz, cr, ch = b.split(width)

    def step(x: Any, hidden: Any) -> tuple[Any, ...]:
        update = functions[0](_clipped(node, x @ wz.t() + hidden @ rz.t() + bz + cz))
        reset = functions[0](_clipped(node, x @ wr.t() + hidden @ rr.t() + br + cr))
        if node.get("linear_before_reset", 0):
            inner = reset * (hidden @ rh.t() + ch) + bh
        else:
            inner = (reset * hidden) @ rh.t() + ch + bh
        new = functions[1](_clipped(node, x @ wh.t() + inner))
        return ((1 - update) * new + update * hidden,)

    return step


@reader("GRU")
def gru(node: Operator, x: Tensor, w: Tensor, r: Tensor, b: Any = None, lengths: Any = None, h: Any = None) -> Any:
    return _recurrent(node, x, w, r, b, lengths, [h], 3, _gru_step, ["Sigmoid", "Tanh"])


@reader("LSTM")
def lstm(
    node: Operator, x: Tensor, w: Tensor, r: Tensor, b: Any = None, lengths: Any = None, h: Any = None, c: Any = None,
    p: Any = None,
) -> Any:  # fmt: skip
    peepholes = iter([] if p is None else list(p))

    def make_step(node: Operator, w: Any, r: Any, b: Any, width: int, functions: Any) -> Step:
        peep = next(peepholes, None)
        looks = [0.0, 0.0, 0.0] if peep is None else peep.split(width)

        def step(x: Any, hidden: Any, cell: Any) -> tuple[Any, ...]:
            gates = x @ w.t() + hidden @ r.t() + b[: 4 * width] + b[4 * width :]
            enter, leave, forget, new = gates.split(width, -1)
            enter = functions[0](_clipped(node, enter + looks[0] * cell))
            forget = functions[0](_clipped(node, forget + looks[2] * cell))
            if node.get("input_forget", 0):
                forget = 1 - enter
            cell = forget * cell + enter * functions[1](_clipped(node, new))
            leave = functions[0](_clipped(node, leave + looks[1] * cell))
            return leave * functions[2](cell), cell

        return step

    return _recurrent(node, x, w, r, b, lengths, [h, c], 4, make_step, ["Sigmoid", "Tanh", "Tanh"])
