"""What records a call of an op: the function that fills its node, written as source.

As a list of things to do it would take longer than all else about a node. It is written when the op is first recorded:
most programs record few of the ops.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._core.node import OpNode, new_node, next_sequence_number, save, save_plainly
from ..._core.process.caller import GENERATED, IS_INTERNAL
from ..._core.tensor import Tensor, edges_of, in_elements, new

if TYPE_CHECKING:
    from types import FunctionType

    from ..op import Op

Recorder = Callable[..., Any]

PENDING: Any = object()
"""Stands for a result that is to be saved, until it exists."""

PROPERTIES: dict[str, str] = {
    "_sym_sizes": "{}._array.shape",
    "_sym_numel": "{}._array.size",
    "_sym_argsize_0": "{}._array.shape[0]",
    "_dtype": "{}._kind.dtype",
    "_sym_strides": "(in_elements({0}._array.strides, {0}._array.itemsize) if {0}._array.size else {0}.stride())",
    "_offset": "{}.storage_offset()",
}
"""What a formula may ask for in place of a tensor, by the end of the parameter's name."""

NAMES: Mapping[str, Any] = {
    "PENDING": PENDING,
    "Tensor": Tensor,
    "edges_of": edges_of,
    "getframe": sys._getframe,
    "in_elements": in_elements,
    "IS_INTERNAL": IS_INTERNAL,
    "new": new,
    "new_node": new_node,
    "next_sequence_number": next_sequence_number,
}
"""What the source of recorders, and of the calls that record, refers to."""


def nothing(*args: Any) -> None:
    """The recorder of an op without derivatives."""


def elementwise_recorder(op: Op, node_type: type[OpNode], grad_positions: Sequence[int], plainly: bool) -> Recorder:
    """`record(operands, output, made=True)`: the node of a call with one result, whose operands may be numbers.

    `plainly`: for calls in plain modes.

    Where the result is not `made` yet, it is not put in the graph either, and is `PENDING` if the node will save it.
    """
    lines = [f"{listed(operand(i) for i in range(len(op.parameters)))} = operands"]
    lines += [line for i in grad_positions for line in edge_lines(i, f"isinstance({operand(i)}, Tensor)")]
    lines += node_lines(listed(f"e{i}" for i in grad_positions), _outputs(plainly))
    asked = _asking(node_type, [f"e{i} is not None" for i in grad_positions])
    late = []
    for name in node_type.saved_names:
        if name == "result":
            lines.append(f"node.result = PENDING if {asked[name]} else None")
            late.append("    if node.result is PENDING:")
            late.append("        node.result = save(output, node)")
        else:
            own = operand(op.parameters.index(name))
            value = f"save({own}) if isinstance({own}, Tensor) else {own}"
            lines.append(f"node.{name} = ({value}) if {asked[name]} else None")
    lines += ["if made:", *late, "    output._requires_grad = True", "    output._grad_fn = node", "return node"]
    return _compiled(op.name, "operands, output, made=True", lines, node_type, save_plainly if plainly else save)


def primitive_recorder(
    op: Op, node_type: type[OpNode], grad_positions: Sequence[int], results: Sequence[str], plainly: bool
) -> Recorder:
    """`record(args, outputs)`: the node of a call, put on the differentiable ones of its outputs.

    `plainly`: for calls in plain modes.
    """
    lines = ["if not outputs:", "    return"]  # an empty tensor taken apart
    edges: list[str] = []
    needs: list[str] = []
    for position in grad_positions:
        if position == op.list_position:
            lines.append(f"e{position} = edges_of(args[{position}])")
            edges.append(f"*e{position}")
            # Where nothing else is differentiable, one of them is why the call is recorded.
            alone = len(grad_positions) == 1
            needs.append("True" if alone else f"any([each is not None for each in e{position}])")
        else:
            lines += [
                f"{operand(position)} = args[{position}]",
                *edge_lines(position, f"{operand(position)} is not None"),
            ]
            edges.append(f"e{position}")
            needs.append(f"e{position} is not None")
    lines += [
        "output = outputs[0]",
        f"shapes = {_outputs(plainly)}",  # by far the most ops have one output
        "if len(outputs) > 1:",
        "    shapes = tuple([(each._array.shape, each._kind) for each in outputs])",
        *node_lines(listed(edges), "shapes"),
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
    lines += saved_lines(op, node_type, needs, results, "args[{}]".format, "outputs[{}]".format)
    return _compiled(op.name, "args, outputs", lines, node_type, save_plainly if plainly else save)


def operand(position: int) -> str:
    """The name of an argument of a call in its source."""
    return f"a{position}"


def listed(parts: Any) -> str:
    """The source of a tuple."""
    return f"({''.join(f'{each}, ' for each in parts)})"


def edge_lines(position: int, is_tensor: str) -> list[str]:
    """Takes down where the gradient of an argument goes: `Tensor._edge`, in place but for a view whose base changed."""
    own, edge = operand(position), f"e{position}"
    return [
        f"{edge} = None",
        f"if {is_tensor}:",
        f"    if {own}._view is not None and ({own}._counter is None or {own}._view.version != {own}._counter[0]):",
        f"        {edge} = {own}._edge()",
        f"    elif {own}._requires_grad:",
        f"        {edge} = ({own}._grad_fn or {own}, {own}._output_nr)",
    ]


def _outputs(plainly: bool) -> str:
    """The source of what a node keeps of its one output; in plain modes one object for all of a shape."""
    return "output._kind.outputs[output._array.shape]" if plainly else "((output._array.shape, output._kind),)"


def node_lines(edges: str, outputs: str) -> list[str]:
    """Makes the node and fills the slots that every node has, as `initialise` does, with `calling_place` in place."""
    return [
        "node = new_node(node_type)",
        f"node.edges = {edges}",
        f"node.outputs = {outputs}",
        "node.sequence = next_sequence_number()",
        "node._hooks = node._metadata = None",
        "try:",
        "    frame = getframe(2)",  # beyond the function that calls the op
        "    code = frame.f_code",
        "    while IS_INTERNAL[code.co_filename]:",
        "        frame = frame.f_back",
        "        code = frame.f_code",
        "    node.code = code",
        "    node.instruction = frame.f_lasti",
        "except (ValueError, AttributeError):",  # called from no Python code at all, or from none but the package's
        "    node.code, node.instruction = None, 0",
    ]


def _asking(node_type: type[OpNode], needs: Sequence[str]) -> dict[str, str]:
    """For each value that may be saved, the condition that a gradient that is needed asks for it.

    What every formula takes is saved in any case: a call is recorded because one of its inputs requires a gradient, be
    it a view made without recording, from which no gradient leads back.
    """
    together = node_type.joint[1] if node_type.joint else ()
    conditions: dict[str, str] = {}
    for name in node_type.saved_names:
        asking = [
            need
            for need, entry in zip(needs, node_type.formulas, strict=True)
            if entry is not None and name in entry[1]
        ]
        always = name in together or len(asking) == sum(entry is not None for entry in node_type.formulas)
        conditions[name] = "True" if always else " or ".join(asking)
    return conditions


def saved_lines(
    op: Any,
    node_type: type[OpNode],
    needs: Sequence[str],
    results: Sequence[str],
    argument: Callable[[int], str],
    output: Callable[[int], str],
) -> list[str]:
    """Saves what the formulas name; `argument` and `output` say how those of a call are written."""
    asked = _asking(node_type, needs)
    lines = []
    for name in node_type.saved_names:
        taken, condition = _taken(op, results, name, argument, output), asked[name]
        lines.append(f"node.{name} = {taken if condition == 'True' else f'({taken}) if {condition} else None'}")
    return lines


def _taken(
    op: Any, results: Sequence[str], name: str, argument: Callable[[int], str], output: Callable[[int], str]
) -> str:
    """How a value that a formula names is taken from a call."""
    if name in results or name.startswith("result"):
        number = results.index(name) if name in results else int(name[6:] or 0)
        return f"save({output(number)}, node)"
    for suffix, value in PROPERTIES.items():
        if name.endswith(suffix) and name.removesuffix(suffix) in op.tensor_names:
            position = op.parameters.index(name.removesuffix(suffix))
            if position == op.list_position:
                return f"tuple([{value.format('each')} for each in {argument(position)}])"
            return value.format(argument(position))
    position = op.parameters.index(name)
    own = argument(position)
    if position == op.list_position:
        return f"[save(each) for each in {own}]"
    return f"None if {own} is None else save({own})" if position in op.tensor_positions else own


def _compiled(name: str, parameters: str, lines: Sequence[str], node_type: type[OpNode], saving: Any) -> Recorder:
    return written("record", parameters, lines, f"record of {name}", {**NAMES, "node_type": node_type, "save": saving})


def written(name: str, parameters: str, lines: Sequence[str], title: str, names: dict[str, Any]) -> Callable[..., Any]:
    """A function of the package's own writing, which tracebacks know by its title."""
    exec(_code(f"def {name}({parameters}):\n" + "".join(f"    {line}\n" for line in lines)), names)
    function: FunctionType = names[name]
    function.__code__ = function.__code__.replace(co_filename=f"{GENERATED}{title}>")
    return function


@functools.cache
def _code(source: str) -> Any:
    """The code of a source; ops that are alike in all that matters share it."""
    from ..._codegen.machine.bytecode import compiled_sources  # not before something is recorded

    return compiled_sources([(f"{GENERATED}function>", source)])[0]
