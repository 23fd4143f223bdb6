"""The graph of a module: its ops as the backward pass knows them, in boxes that are its submodules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flambeau import Tensor, enable_grad

from ._protobuf import data, integer, message

_PRODUCER = 22


def module_graph(model: Any, inputs: Any) -> tuple[bytes, list[str]]:
    """An encoded GraphDef of `model`, called on `inputs` in evaluation mode, and a line of text for each node."""
    arguments = (inputs,) if isinstance(inputs, (Tensor, Mapping)) else tuple(inputs)
    leaves: dict[Tensor, Tensor] = {each: _leaf(each) for each in _tensors(arguments)}
    graph = _Graph(model)
    for number, leaf in enumerate(leaves.values()):
        graph.add_leaf(leaf, f"input/{number}", "IO Node")
    for name, parameter in model.named_parameters():
        path, _, last = name.rpartition(".")
        graph.add_leaf(parameter, f"{graph.scopes[path]}/{last}", "Parameter")
    with _prepared(model), enable_grad():
        handles = [
            module.register_forward_hook(graph.recorder(graph.scopes[path]), with_kwargs=True)
            for path, module in model.named_modules()
        ]
        try:
            outputs = list(_tensors(model(*_replaced(arguments, leaves))))
        finally:
            for handle in handles:
                handle.remove()
    return graph.encoded(outputs)


def _tensors(value: Any) -> Iterator[Tensor]:
    """All tensors in a nest of containers."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple, Mapping)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(each)


def _replaced(value: Any, leaves: dict[Tensor, Tensor]) -> Any:
    if isinstance(value, Tensor):
        return leaves[value]
    if isinstance(value, Mapping):
        return {key: _replaced(each, leaves) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_replaced(each, leaves) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _leaf(tensor: Tensor) -> Tensor:
    """A tensor whose use is recorded, if that is possible for its type."""
    leaf = tensor.detach()
    return leaf.requires_grad_() if leaf.is_floating_point() or leaf.is_complex() else leaf


@contextmanager
def _prepared(model: Any) -> Iterator[None]:
    """The model in evaluation mode, with every parameter recorded; afterwards it is as before."""
    training = {module: module.training for module in model.modules()}
    frozen = [each for each in model.parameters() if not each.requires_grad and each.is_floating_point()]
    model.eval()
    for parameter in frozen:
        parameter.requires_grad_()
    try:
        yield
    finally:
        for parameter in frozen:
            parameter.requires_grad_(False)
        for module, was_training in training.items():
            module.training = was_training


class _Graph:
    """Which ops there are, whose they are, and what they are called."""

    def __init__(self, model: Any) -> None:
        self.scopes: dict[str, str] = {}
        for path, module in model.named_modules():
            parent, _, last = path.rpartition(".")
            kind = type(module).__name__
            self.scopes[path] = f"{self.scopes[parent]}/{kind}[{last}]" if path else kind
        self.leaves: dict[int, str] = {}
        self.owners: dict[Any, str] = {}
        self.shapes: dict[Any, tuple[int, ...]] = {}
        self.nodes: list[bytes] = []
        self.lines: list[str] = []

    def add_leaf(self, tensor: Tensor, name: str, kind: str) -> None:
        """An input or a parameter."""
        self.leaves[id(tensor)] = name
        self._add(name, kind, [], tuple(tensor.shape))

    def recorder(self, scope: str) -> Any:
        """A hook that claims, for a module that has been called, what no submodule has claimed."""

        def record(module: Any, args: Any, kwargs: Any, outputs: Any) -> None:
            before = {each.grad_fn for each in _tensors([args, kwargs])}
            for output in _tensors(outputs):
                if output.grad_fn is not None:
                    self.shapes.setdefault(output.grad_fn, tuple(output.shape))
                waiting = [output.grad_fn]
                while waiting:
                    node = waiting.pop()
                    if node is None or node in before or node in self.owners or hasattr(node, "variable"):
                        continue
                    self.owners[node] = scope
                    waiting += [each for each, _ in node.next_functions]

        return record

    def encoded(self, outputs: list[Tensor]) -> tuple[bytes, list[str]]:
        """The whole graph as bytes of a protocol buffer."""
        names: dict[Any, str] = {}
        counts: Counter[str] = Counter()
        for node in _inputs_first([each.grad_fn for each in outputs]):
            if hasattr(node, "variable"):
                names[node] = self.leaves.get(id(node.variable), "")
                continue
            kind = re.sub(r"Backward\d*$", "", node.name())
            name = f"{self.owners[node]}/{kind}"
            counts[name] += 1
            names[node] = name if counts[name] == 1 else f"{name}_{counts[name] - 1}"
            self._add(names[node], kind, self._sources(node, names), self.shapes.get(node))
        for number, output in enumerate(outputs):
            if output.grad_fn is not None:
                source = names[output.grad_fn]
            else:
                source = self.leaves.get(id(output), "")
            self._add(f"output/{number}", "IO Node", [source] if source else [], tuple(output.shape))
        return b"".join(self.nodes) + message(4, integer(1, _PRODUCER)), self.lines

    def _sources(self, node: Any, names: dict[Any, str]) -> list[str]:
        found = [names[each] for each, _ in node.next_functions if each is not None]
        return [each for each in found if each]

    def _add(self, name: str, kind: str, sources: list[str], shape: tuple[int, ...] | None) -> None:
        attributes = b""
        if shape is not None:
            sizes = message(7, *(message(2, integer(1, size)) for size in shape))
            attributes = message(5, data(1, "_output_shapes"), message(2, message(1, sizes)))
        self.nodes.append(message(1, data(1, name), data(2, kind), *(data(3, each) for each in sources), attributes))
        self.lines.append(f"{name} = {kind}({', '.join(sources)})")


def _inputs_first(nodes: list[Any]) -> list[Any]:
    """All nodes that lead to `nodes`, each after those that it takes its inputs from."""
    ordered: dict[Any, None] = {}
    waiting = [(each, False) for each in reversed(nodes)]
    while waiting:
        node, inputs_done = waiting.pop()
        if node is None or node in ordered:
            continue
        if inputs_done:
            ordered[node] = None
        else:
            waiting.append((node, True))
            waiting += [(each, False) for each, _ in reversed(node.next_functions)]
    return list(ordered)
