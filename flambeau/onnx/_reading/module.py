"""`load_module`: an ONNX file as a module, which runs its graph operator by operator."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..._core.tensor import Tensor
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ._table import READERS, NotRead, Operator
from .files import OnnxFileError, read_message, tensor_of

_GRAPH, _GRAPHS = 5, 10
"""Kinds of attributes that are graphs."""

Values = dict[str, Any]


class Step(NamedTuple):
    """One node, ready to run."""

    run: Callable[..., Any]
    node: Operator
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    bodies: Mapping[str, Body]
    dead: tuple[str, ...]
    """Values that nobody reads after it."""


class Body(NamedTuple):
    """A graph, ready to run."""

    inputs: tuple[str, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    constants: Values

    def run(self, values: Values) -> list[Any]:
        """Compute the outputs; `values` has all that is known outside, and grows."""
        values.update(self.constants)
        for step in self.steps:
            _run(step, values)
        missing = [each for each in self.outputs if each not in values]
        if missing:
            raise OnnxFileError(f"nothing computes the output {missing[0]!r}")
        return [values[each] for each in self.outputs]


def _run(step: Step, values: Values) -> None:
    node = step.node
    try:
        operands = [values[each] if each else None for each in step.inputs]
    except KeyError as error:
        raise OnnxFileError(f"{_said(node)} reads {error.args[0]!r}, which nothing has computed") from error
    if step.bodies:
        node = replace(node, graphs={name: _bound(body, values) for name, body in step.bodies.items()})
    try:
        made = step.run(node, *operands)
    except (NotRead, OnnxFileError) as error:
        raise type(error)(f"{_said(node)}: {error}") from error
    except Exception as error:
        sizes = ", ".join(str(list(each.shape)) if isinstance(each, Tensor) else "-" for each in operands)
        raise RuntimeError(f"{_said(node)} failed on operands of the shapes {sizes}: {error}") from error
    results = made if isinstance(made, tuple) else (made,)
    for name, value in zip(step.outputs, results, strict=False):
        if name:
            values[name] = value
    for name in step.dead:
        values.pop(name, None)


def _bound(body: Body, values: Values) -> Callable[..., list[Any]]:
    """A body as a function: it sees what is outside of it, and leaves nothing there."""

    def run(*operands: Any) -> list[Any]:
        inner = dict(values)
        inner.update(zip(body.inputs, operands, strict=True))
        return body.run(inner)

    return run


def _said(node: Operator) -> str:
    return f"the node {node.name!r} ({node.kind})" if node.name else f"a node {node.kind}"


class Reading:
    """Makes bodies of a model's graphs."""

    def __init__(self, message: Any, folder: Path | None) -> None:
        self.folder = folder
        self.opsets = {"" if each.domain == "ai.onnx" else each.domain: each.version for each in message.opset_import}
        self.functions = {(each.domain, each.name): each for each in message.functions}
        self._within: list[tuple[str, str]] = []

    def body(self, graph: Any, constants: Values, inputs: Sequence[str]) -> Body:
        """A graph with its constants."""
        nodes = list(graph.node)
        outputs = [each if isinstance(each, str) else each.name for each in graph.output]
        last: dict[str, int] = {}
        for position, node in enumerate(nodes):
            for name in _read_by(node):
                last[name] = position
        dead: dict[int, list[str]] = {}
        for name, position in last.items():
            if name not in constants and name not in outputs:
                dead.setdefault(position, []).append(name)
        made = [self._step(node, tuple(dead.get(position, ()))) for position, node in enumerate(nodes)]
        return Body(tuple(inputs), tuple(made), tuple(outputs), constants)

    def _step(self, node: Any, dead: tuple[str, ...]) -> Step:
        domain = "" if node.domain == "ai.onnx" else node.domain
        attributes, bodies = self._attributes(node)
        version = self.opsets.get(domain, 0)
        operator = Operator(node.op_type, version, attributes, len(node.output), node.name)
        run = READERS.get((domain, node.op_type))
        if run is None and (node.domain, node.op_type) in self.functions:
            run = self._function(self.functions[node.domain, node.op_type], attributes)
        if run is None:
            where = f" of {domain}" if domain else ""
            raise NotRead(f"the operator {node.op_type}{where} is not read")
        return Step(run, operator, tuple(node.input), tuple(node.output), bodies, dead)

    def _attributes(self, node: Any) -> tuple[Values, dict[str, Body]]:
        onnx_kinds = {1: "f", 2: "i", 6: "floats", 7: "ints"}
        found: Values = {}
        bodies: dict[str, Body] = {}
        for each in node.attribute:
            if each.type in onnx_kinds:
                value = getattr(each, onnx_kinds[each.type])
                found[each.name] = value if isinstance(value, (int, float)) else list(value)
            elif each.type == 3:
                found[each.name] = each.s.decode("utf-8", "replace")
            elif each.type == 8:
                found[each.name] = [text.decode("utf-8", "replace") for text in each.strings]
            elif each.type == 4:
                found[each.name] = tensor_of(each.t, self.folder)
            elif each.type == _GRAPH:
                constants = {item.name: tensor_of(item, self.folder) for item in each.g.initializer}
                bodies[each.name] = self.body(each.g, constants, [item.name for item in each.g.input])
            elif not each.ref_attr_name:
                raise NotRead(f"the attribute {each.name!r} of {node.op_type} is of a kind that is not read")
        return found, bodies

    def _function(self, function: Any, given: Values) -> Callable[..., Any]:
        """A function of the model's own: its nodes, with the attributes of the call."""
        key = (function.domain, function.name)
        if key in self._within:
            raise OnnxFileError(f"the function {function.name!r} calls itself")
        outer, self.opsets = self.opsets, {each.domain: each.version for each in function.opset_import}
        self._within.append(key)
        try:
            copy = type(function)()
            copy.CopyFrom(function)
            for node in copy.node:
                for each in node.attribute:
                    if each.ref_attr_name:
                        _fill_in(each, given.get(each.ref_attr_name))
            body = self.body(copy, {}, list(copy.input))
        finally:
            self.opsets = outer
            self._within.pop()

        def run(node: Operator, *operands: Any) -> Any:
            padded = (*operands, *[None] * (len(body.inputs) - len(operands)))
            return tuple(body.run(dict(zip(body.inputs, padded, strict=True))))

        return run


def _fill_in(attribute: Any, value: Any) -> None:
    """Put an attribute of a call where a node of a function names it."""
    if isinstance(value, float):
        attribute.type, attribute.f = 1, value
    elif isinstance(value, int):
        attribute.type, attribute.i = 2, value
    elif isinstance(value, str):
        attribute.type, attribute.s = 3, value.encode()
    elif isinstance(value, list):
        if value and isinstance(value[0], float):
            attribute.type = 6
            attribute.floats.extend(value)
        else:
            attribute.type = 7
            attribute.ints.extend(value)
    else:
        raise NotRead(f"the attribute {attribute.ref_attr_name!r} of a function is not given, or is no number")
    attribute.ref_attr_name = ""


def _read_by(node: Any) -> list[str]:
    """What a node reads, its bodies included."""
    found = [each for each in node.input if each]
    for attribute in node.attribute:
        if attribute.type == _GRAPH:
            found += [each.name for each in attribute.g.output]
            for inner in attribute.g.node:
                found += _read_by(inner)
    return found


class ONNXModule(Module):
    """A module that runs an ONNX graph. Its weights are parameters under their names in the file."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        message, folder = read_message(source)
        graph = message.graph
        reading = Reading(message, folder)
        self._weights: dict[str, tuple[Module, str]] = {}
        for each in graph.initializer:
            self._keep(each.name, tensor_of(each, folder))
        if graph.sparse_initializer:
            raise NotRead("sparse tensors in a file")
        self.input_names = [each.name for each in graph.input if each.name not in self._weights]
        self.output_names = [each.name for each in graph.output]
        self._body = reading.body(graph, dict.fromkeys(self._weights), self.input_names)

    def _keep(self, name: str, tensor: Tensor) -> None:
        """A weight as a parameter, or as a buffer if it has no derivative, in modules along its dotted name."""
        owner: Module = self
        *path, last = name.split(".") if all(name.split(".")) else [name.replace(".", "_")]
        for part in path:
            inner = owner._modules.get(part)
            if inner is None:
                if hasattr(owner, part):
                    owner, path = self, []
                    last = name.replace(".", "_")
                    break
                inner = Module()
                owner.add_module(part, inner)
            owner = inner
        while hasattr(owner, last):
            last += "_"
        if tensor.dtype.is_floating_point:
            owner.register_parameter(last, Parameter(tensor))
        else:
            owner.register_buffer(last, tensor)
        self._weights[name] = owner, last

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph: inputs in its order or by name; one result, or a tuple of them."""
        values: Values = dict(zip(self.input_names, args, strict=False))
        unknown = [each for each in kwargs if each not in self.input_names]
        values.update(kwargs)
        if len(args) > len(self.input_names) or unknown or len(values) < len(self.input_names):
            raise TypeError(f"the model's inputs are {', '.join(self.input_names)}; it was given {len(values)} of them")
        weights = {name: getattr(owner, last) for name, (owner, last) in self._weights.items()}
        made = self._body._replace(constants=weights).run(values)
        return made[0] if len(made) == 1 else tuple(made)

    def extra_repr(self) -> str:
        """The interface of the graph."""
        return f"{len(self._body.steps)} nodes, {', '.join(self.input_names)} -> {', '.join(self.output_names)}"


def load_module(source: str | os.PathLike[str] | bytes | Any) -> ONNXModule:
    """An ONNX model as a module that runs here: from a file, from its bytes, or from a message of the `onnx` package.

    Nothing of the file is executed. Weights outside of it are read from its own folder only.

    Args:
        source (str or PathLike or bytes or object): a path, the bytes of a file, or a message of the `onnx` package.

    Returns:
        ONNXModule: the module.

    Example:
        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/model.onnx"
        >>> _ = torch.onnx.export(torch.nn.ReLU(), (torch.ones(2),), path, verbose=False)
        >>> torch.onnx.load_module(path)(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    try:
        return ONNXModule(source)
    except (AttributeError, KeyError, OverflowError, RecursionError, UnicodeError) as error:
        raise OnnxFileError(f"this ONNX file is damaged: {type(error).__name__}: {error}") from error
