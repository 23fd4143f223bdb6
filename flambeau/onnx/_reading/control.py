"""Operators with bodies: `If`, `Loop`, `Scan`; and sequences and optional values, which are Python's lists and None."""

from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor

from ._table import NotRead, Operator, numbers, reader

_MOST_STEPS = 2**63 - 1


@reader("If")
def if_(node: Operator, condition: Tensor) -> Any:
    return tuple(node.graphs["then_branch" if bool(condition.reshape(())) else "else_branch"]())


@reader("Loop")
def loop(node: Operator, most: Tensor | None, condition: Tensor | None, *carried: Any) -> Any:
    """Values that are handed on from step to step, then those that are collected."""
    count = _MOST_STEPS if most is None else int(most.reshape(()).item())
    going = condition is None or bool(condition.reshape(()))
    state, step = list(carried), 0
    collected: list[list[Any]] = [[] for _ in range(node.results - len(state))]
    while going and step < count:
        made = node.graphs["body"](flambeau.tensor(step), flambeau.tensor(going), *state)
        going = bool(made[0].reshape(()))
        state = made[1 : 1 + len(state)]
        for values, each in zip(collected, made[1 + len(state) :], strict=True):
            values.append(each)
        step += 1
    return (*state, *[flambeau.stack(each) if each else flambeau.zeros(0) for each in collected])


@reader("Scan")
def scan(node: Operator, *operands: Any) -> Any:
    if node.opset < 9:
        raise NotRead("Scan of opset 8")
    count = node.get("num_scan_inputs")
    state, scanned = list(operands[: len(operands) - count]), operands[len(operands) - count :]
    axes = node.get("scan_input_axes", [0] * count)
    backwards = node.get("scan_input_directions", [0] * count)
    rows = []
    for each, axis, back in zip(scanned, axes, backwards, strict=True):
        parts = list(each.unbind(axis))
        rows.append(parts[::-1] if back else parts)
    collected: list[list[Any]] = [[] for _ in range(node.results - len(state))]
    for step in zip(*rows, strict=True):
        made = node.graphs["body"](*state, *step)
        state = made[: len(state)]
        for values, each in zip(collected, made[len(state) :], strict=True):
            values.append(each)
    out_axes = node.get("scan_output_axes", [0] * len(collected))
    out_back = node.get("scan_output_directions", [0] * len(collected))
    stacked = [
        flambeau.stack(values[::-1] if back else values, axis)
        for values, axis, back in zip(collected, out_axes, out_back, strict=True)
    ]
    return (*state, *stacked)


@reader("SequenceEmpty")
def sequence_empty(node: Operator) -> Any:
    return ([],)


@reader("SequenceConstruct")
def sequence_construct(node: Operator, *values: Tensor) -> Any:
    return (list(values),)


@reader("SequenceInsert")
def sequence_insert(node: Operator, sequence: list[Any], value: Tensor, place: Tensor | None = None) -> Any:
    made = list(sequence)
    made.insert(len(made) if place is None else int(place.item()), value)
    return (made,)


@reader("SequenceErase")
def sequence_erase(node: Operator, sequence: list[Any], place: Tensor | None = None) -> Any:
    made = list(sequence)
    del made[-1 if place is None else int(place.item())]
    return (made,)


@reader("SequenceAt")
def sequence_at(node: Operator, sequence: list[Any], place: Tensor) -> Any:
    return sequence[int(place.item())]


@reader("SequenceLength")
def sequence_length(node: Operator, sequence: list[Any]) -> Any:
    return flambeau.tensor(len(sequence), dtype=flambeau.int64)


@reader("ConcatFromSequence")
def concat_from_sequence(node: Operator, sequence: list[Any]) -> Any:
    join = flambeau.stack if node.get("new_axis", 0) else flambeau.cat
    return join(sequence, node.get("axis"))


@reader("SplitToSequence")
def split_to_sequence(node: Operator, x: Tensor, sizes: Tensor | None = None) -> Any:
    axis = node.get("axis", 0)
    if sizes is None:
        parts = list(flambeau.split(x, 1, axis))
        return ([each.squeeze(axis) for each in parts] if not node.get("keepdims", 1) else parts,)
    wanted = int(sizes.item()) if not sizes.dim() else [int(each) for each in numbers(sizes)]
    return (list(flambeau.split(x, wanted, axis)),)


@reader("Optional")
def optional(node: Operator, value: Any = None) -> Any:
    return (value,)


@reader("OptionalHasElement")
def optional_has_element(node: Operator, value: Any = None) -> Any:
    return flambeau.tensor(value is not None)


@reader("OptionalGetElement")
def optional_get_element(node: Operator, value: Any) -> Any:
    if value is None:
        raise ValueError("an optional value that is read is not there")
    return (value,)
