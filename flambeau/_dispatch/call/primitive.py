"""The short way through a primitive, written as source for one op once it has been called a few times.

`Primitive.__call__` goes through the arguments of any op, and heeds every mode. What most calls need of it is known of
an op beforehand: which arguments are tensors, whether the result is a view, what its node saves. Written out, that is a
third of the work. A call that is not an ordinary one (a mode, a subclass, a dtype that kernels do not read) goes the
long way as before; one on which a watcher alone looks on goes by a twin of the short way, which tells it the times.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import numpy as np

from ..._core.node import save_plainly
from ..gradients import recorder
from ..gradients.recorder import edge_lines, listed, node_lines, operand, saved_lines, written
from ..op import OPTIONAL_TENSOR
from . import text
from .text import OUTSIDE_THE_GRAPH, indented, is_recorded, needs_gradient, new_tensor, new_view

CALLS = 100
"""So often an op is called before its own function is written."""

_NAMES = {**recorder.NAMES, **text.NAMES, "ndarray": np.ndarray, "now": perf_counter_ns, "save": save_plainly}


def short_call(op: Any, long: Callable[..., Any], watched: bool = False) -> Callable[..., Any]:
    """`__call__` of a class whose only instance is `op`; `long` takes over what is not ordinary.

    `watched`: its twin `watched_call`, for the modes in which a watcher looks on. Kernels have arrays, and call no ops:
    the modes may stay as they are while one runs.
    """
    parameters, lines = _head_and_body(op, watched)
    names = {**_NAMES, "long": long, "node_type": op.node_class}
    name, title = ("watched_call", "watched call") if watched else ("__call__", "call")
    return written(name, parameters, lines, f"{title} of {op.name}", names)


def source(op: Any) -> str:
    """The text of the short call of an op."""
    parameters, lines = _head_and_body(op, watched=False)
    return f"def __call__({parameters}):\n{indented(lines, 4)}\n"


def _head_and_body(op: Any, watched: bool) -> tuple[str, list[str]]:
    """The parameters and the lines of the short call of an op."""
    kernel = op.kernel
    while hasattr(kernel, "__wrapped__"):
        kernel = kernel.__wrapped__
    arguments = [operand(position) for position in range(kernel.__code__.co_argcount)]
    needed = max((*op.tensor_positions, op.list_position or 0)) + 1
    if kernel.__defaults__:  # calls may leave out the last ones
        arguments = [*arguments[:needed], "*rest"]
    passed = ", ".join(arguments)
    go_long = f"    return long(self, {passed})"
    told = f"watcher.ran(self, ({passed},), {{}}, start, now())"
    if watched:
        lines = ["modes = THREAD.modes", "watcher = modes.watcher", *_tests(op, [], go_long), "start = now()"]
    else:
        aside = f"    return long(self, {passed}) if modes.watcher is None else self.watched_call({passed})"
        lines = ["modes = THREAD.modes", *_tests(op, ["not modes.plain"], go_long, aside)]
    recorded = "False"
    if op.node_class is not None:
        needs = " or ".join(_needs_gradient(op, position) for position in op.grad_positions)
        recorded = is_recorded(needs)
    first = operand(op.tensor_positions[0]) if op.list_position is None else f"{operand(op.list_position)}[0]"
    arrays = ", ".join(map(_array(op), arguments))
    lines += [
        f"result = (kind.tries.get(self) or kind.backend.first_try(self))({arrays})",
        "if type(result) is not ndarray and type(result) is not kind.backend.array_class:",
        "    if result is None:",
        f"        result = self.kernel({arrays})",
        "    if type(result) is tuple or type(result) is list:",
        f"        results = self.several_results(result, {first}, modes, ({passed},) if {recorded} else None)",
        *([f"        {told.format('results')}"] if watched else []),
        "        return results",
        "    if type(result) is not kind.backend.array_class:",
        "        result = kind.backend.asarray(result)",
        "if result.dtype is not kind.dtype.numpy:",
        "    kind = kind.beside[result.dtype]",
        *(new_view("result", first, ()) if op.is_view else new_tensor("result", place=())),
    ]
    if op.node_class is None:
        lines += OUTSIDE_THE_GRAPH
    else:
        lines.append(f"if {recorded} and kind.differentiable:")
        lines += [f"    {line}" for line in _recording(op, lambda position: _argument(arguments, position))]
        lines += ["else:", *[f"    {line}" for line in OUTSIDE_THE_GRAPH]]
    if watched:
        lines.append(told.format("output"))
    lines.append("return output")
    return ", ".join(["self", *arguments]), lines


def _argument(arguments: list[str], position: int) -> str:
    """How an argument is written where the last ones may be given as `*rest`."""
    named = len(arguments) - (arguments[-1] == "*rest")
    return arguments[position] if position < named else f"rest[{position - named}]"


def _tests(op: Any, first_tests: list[str], go_long: str, aside: str = "") -> list[str]:
    """What makes sure that a call is an ordinary one, and takes the kind of its first tensor.

    `aside` is the way of a call that one of `first_tests`, or the type of an argument, keeps from being one.
    """
    aside = aside or go_long
    if op.list_position is not None:
        given = operand(op.list_position)
        return [
            f"if {' or '.join([*first_tests, f'not {given}', f'type({given}[0]) not in PLAIN_TYPES'])}:",
            aside,
            f"kind = {given}[0]._kind",
            "if kind.indirect:",
            go_long,
            f"for each in {given}:",
            "    if type(each) not in PLAIN_TYPES or each._kind is not kind:",
            f"    {go_long}",
        ]
    first, *others = op.tensor_positions
    types, kinds = [f"type({operand(first)}) not in PLAIN_TYPES"], ["kind.indirect"]
    for position in others:
        own = operand(position)
        wrong_type, wrong_kind = f"type({own}) not in PLAIN_TYPES", f"{own}._kind is not kind"
        wrong_kind = f"({wrong_kind} and ({own}._kind.indirect or {own}._kind.device is not kind.device))"
        if _may_be_none(op, position):
            wrong_type, wrong_kind = (f"({own} is not None and {each})" for each in (wrong_type, wrong_kind))
        types.append(wrong_type)
        kinds.append(wrong_kind)
    return [
        f"if {' or '.join([*first_tests, *types])}:",
        aside,
        f"kind = {operand(first)}._kind",
        f"if {' or '.join(kinds)}:",
        go_long,
    ]


def _may_be_none(op: Any, position: int) -> bool:
    return str(op.kernel.__annotations__.get(op.parameters[position])) == OPTIONAL_TENSOR


def _array(op: Any) -> Callable[[str], str]:
    """How an argument is given to the kernel."""
    arrays = {operand(position): f"{operand(position)}._array" for position in op.tensor_positions}
    for position in op.tensor_positions:
        if _may_be_none(op, position):
            own = operand(position)
            arrays[own] = f"None if {own} is None else {own}._array"
    if op.list_position is not None:
        arrays[operand(op.list_position)] = f"[each._array for each in {operand(op.list_position)}]"
    return lambda argument: arrays.get(argument, argument)


def _needs_gradient(op: Any, position: int) -> str:
    own = operand(position)
    if position == op.list_position:
        return f"any([{needs_gradient('each')} for each in {own}])"
    test = needs_gradient(own)
    return f"({own} is not None and ({test}))" if _may_be_none(op, position) else test


def _recording(op: Any, argument: Callable[[int], str]) -> list[str]:
    """What a recorder does for one output."""
    lines: list[str] = []
    edges: list[str] = []
    needs: list[str] = []
    for position in op.grad_positions:
        if position == op.list_position:
            lines.append(f"e{position} = edges_of({operand(position)})")
            edges.append(f"*e{position}")
            needs.append("True")
        else:
            is_tensor = f"{operand(position)} is not None" if _may_be_none(op, position) else "True"
            lines += edge_lines(position, is_tensor)
            edges.append(f"e{position}")
            needs.append(f"e{position} is not None")
    lines += node_lines(listed(edges), "kind.outputs[result.shape]")  # plain calls alone come here
    lines += ["output._requires_grad = True", "output._grad_fn = node"]
    return lines + saved_lines(op, op.node_class, needs, op.results, argument, lambda number: "output")
