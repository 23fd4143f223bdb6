"""What records a call of an op: the function that fills its node, written as source.

As a list of things to do it would take longer than all else about a node. It is written when the op is first recorded:
most programs record few of the ops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._core.node import OpNode, new_node, next_sequence_number, save
from .._core.process.caller import GENERATED, calling_place
from .._core.tensor import Tensor

if TYPE_CHECKING:
    from .op import Op

Recorder = Callable[..., Any]

PENDING: Any = object()
"""Stands for a result that is to be saved, until it exists."""

PROPERTIES: dict[str, str] = {
    "_sym_sizes": "{}._array.shape",
    "_sym_numel": "{}._array.size",
    "_sym_argsize_0": "{}._array.shape[0]",
    "_dtype": "{}._kind.dtype",
    "_sym_strides": "{}.stride()",
    "_offset": "{}.storage_offset()",
}
"""What a formula may ask for in place of a tensor, by the end of the parameter's name."""

_NAMES: Mapping[str, Any] = {
    "PENDING": PENDING,
    "Tensor": Tensor,
    "calling_place": calling_place,
    "new_node": new_node,
    "next_sequence_number": next_sequence_number,
    "save": save,
}


def nothing(*args: Any) -> None:
    """The recorder of an op without derivatives."""


def elementwise_recorder(op: Op, node_type: type[OpNode], grad_positions: Sequence[int]) -> Recorder:
    """`record(operands, output, made=True)`: the node of a call with one result, whose operands may be numbers.

    Where the result is not `made` yet, it is not put in the graph either, and is `PENDING` if the node will save it.
    """
    lines = [f"{_listed(_operand(i) for i in range(len(op.parameters)))} = operands"]
    lines += [line for i in grad_positions for line in _edge(i, f"isinstance({_operand(i)}, Tensor)")]
    lines += _node(_listed(f"e{i}" for i in grad_positions), "((output._array.shape, output._kind),)")
    asked = _asking(node_type, [f"e{i} is not None" for i in grad_positions])
    late = []
    for name in node_type.saved_names:
        if name == "result":
            lines.append(f"node.result = PENDING if {asked[name]} else None")
            late.append("    if node.result is PENDING:")
            late.append("        node.result = save(output, node)")
        else:
            operand = _operand(op.parameters.index(name))
            value = f"save({operand}) if isinstance({operand}, Tensor) else {operand}"
            lines.append(f"node.{name} = ({value}) if {asked[name]} else None")
    lines += ["if made:", *late, "    output._requires_grad = True", "    output._grad_fn = node", "return node"]
    return _compiled(op.name, "operands, output, made=True", lines, node_type)


def primitive_recorder(
    op: Op, node_type: type[OpNode], grad_positions: Sequence[int], results: Sequence[str]
) -> Recorder:
    """`record(args, outputs)`: the node of a call, put on the differentiable ones of its outputs."""
    lines = ["if not outputs:", "    return"]  # an empty tensor taken apart
    edges: list[str] = []
    needs: list[str] = []
    for position in grad_positions:
        if position == op.list_position:
            lines.append(f"e{position} = [each._edge() for each in args[{position}]]")
            edges.append(f"*e{position}")
            needs.append(f"any([each is not None for each in e{position}])")
        else:
            lines += [f"{_operand(position)} = args[{position}]", *_edge(position, f"{_operand(position)} is not None")]
            edges.append(f"e{position}")
            needs.append(f"e{position} is not None")
    lines += [
        "output = outputs[0]",
        "shapes = (output._array.shape, output._kind),",  # by far the most ops have one output
        "if len(outputs) > 1:",
        "    shapes = tuple([(each._array.shape, each._kind) for each in outputs])",
        *_node(_listed(edges), "shapes"),
        # The outputs before anything is saved: what is saved of an output has its number.
        "if output._kind.differentiable:",
        "    output._requires_grad = True",
        "    output._grad_fn = node",
        "    output._output_nr = 0",
        "if len(outputs) > 1:",
        "    for number, each in enumerate(outputs):",
        "        if number and each._kind.differentiable:",
        "            each._requires_grad = True",
        "            each._grad_fn = node",
        "            each._output_nr = number",
    ]
    asked = _asking(node_type, needs)
    for name in node_type.saved_names:
        lines.append(f"node.{name} = ({_taken(op, results, name)}) if {asked[name]} else None")
    return _compiled(op.name, "args, outputs", lines, node_type)


def _operand(position: int) -> str:
    return f"a{position}"


def _listed(parts: Any) -> str:
    """The source of a tuple."""
    return f"({''.join(f'{each}, ' for each in parts)})"


def _edge(position: int, is_tensor: str) -> list[str]:
    """Takes down where the gradient of an argument goes: `Tensor._edge`, in place for what is no view."""
    operand, edge = _operand(position), f"e{position}"
    return [
        f"{edge} = None",
        f"if {is_tensor}:",
        f"    if {operand}._view is not None:",
        f"        {edge} = {operand}._edge()",
        f"    elif {operand}._requires_grad:",
        f"        {edge} = ({operand}._grad_fn or {operand}, {operand}._output_nr)",
    ]


def _node(edges: str, outputs: str) -> list[str]:
    """Makes the node and fills the slots that every node has, as `initialise` does."""
    return [
        "node = new_node(node_type)",
        f"node.edges = {edges}",
        f"node.outputs = {outputs}",
        "node.sequence = next_sequence_number()",
        "node.place = calling_place()",
        "node._hooks = node._metadata = None",
    ]


def _asking(node_type: type[OpNode], needs: Sequence[str]) -> dict[str, str]:
    """For each value that may be saved, the condition that a gradient that is needed asks for it."""
    together = node_type.joint[1] if node_type.joint else ()
    conditions: dict[str, str] = {}
    for name in node_type.saved_names:
        asking = [
            need
            for need, entry in zip(needs, node_type.formulas, strict=True)
            if entry is not None and name in entry[1]
        ]
        conditions[name] = "True" if name in together else " or ".join(asking)
    return conditions


def _taken(op: Any, results: Sequence[str], name: str) -> str:
    """How a value that a formula names is taken from a call."""
    if name in results or name.startswith("result"):
        number = results.index(name) if name in results else int(name[6:] or 0)
        return f"save(outputs[{number}], node)"
    for suffix, value in PROPERTIES.items():
        if name.endswith(suffix) and name.removesuffix(suffix) in op.tensor_names:
            position = op.parameters.index(name.removesuffix(suffix))
            if position == op.list_position:
                return f"tuple([{value.format('each')} for each in args[{position}]])"
            return value.format(f"args[{position}]")
    position = op.parameters.index(name)
    if position == op.list_position:
        return f"[save(each) for each in args[{position}]]"
    if position in op.tensor_positions:
        return f"None if args[{position}] is None else save(args[{position}])"
    return f"args[{position}]"


def _compiled(name: str, parameters: str, lines: Sequence[str], node_type: type[OpNode]) -> Recorder:
    source = f"def record({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
    names: dict[str, Any] = {**_NAMES, "node_type": node_type}
    exec(compile(source, f"{GENERATED}record of {name}>", "exec"), names)
    return names["record"]  # type: ignore[no-any-return]
