"""A module cut into submodules, under the names of `torch.fx.passes.split_module`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..graph import Graph
from ..graph_module import GraphModule, _get_attr
from ..node import Node, map_arg
from ..proxy import Proxy

__all__ = ["Partition", "split_module", "split_module_simple"]


class Partition:
    """One part: the names of what it takes and returns, what it depends on, and its graph."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n "
            f"partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


def split_module(
    m: GraphModule, root_m: Any, split_callback: Callable[[Node], int], qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False, keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True, *, partition_affix: str | None = None, tuple_return: bool = False,
) -> GraphModule:  # fmt: skip
    """A module of submodules: `split_callback` says for each node into which of them it goes."""
    parts: dict[str, Partition] = {}
    owners: dict[Node, Partition] = {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        name = str(split_callback(node))
        if partition_affix is not None:
            name = f"{partition_affix}_{name}"
        part = owners[node] = parts.setdefault(name, Partition(name))
        part.node_names.append(node.name)
    _note_uses(m, owners)
    for part in parts.values():
        _add_inputs(m, part, keep_original_input_name)
    for node, part in owners.items():
        _copy_node(m, node, part, qualname_map, bool(keep_original_node_name))
    order = list(parts.values()) if keep_original_order else _sorted(parts)
    return _assembled(m, order, tuple_return)


def split_module_simple(
    m: GraphModule, node_to_partition: dict[Node, int], *, partition_affix: str | None = None
) -> GraphModule:
    """Split a module by a table of nodes, whose parts follow one after the other."""
    return split_module(
        m, m, node_to_partition.__getitem__, keep_original_order=True, partition_affix=partition_affix
    )  # fmt: skip


def _note_uses(m: GraphModule, owners: dict[Node, Partition]) -> None:
    """Note which values go from one part to another, or out."""
    for node in m.graph.nodes:
        user = owners.get(node)
        for used in node.all_input_nodes:
            maker = owners.get(used)
            if maker is user:
                continue
            if maker is not None:
                maker.outputs.setdefault(used.name)
            if user is not None:
                user.inputs.setdefault(used.name)
            if maker is not None and user is not None:
                maker.dependents.setdefault(user.name)
                user.dependencies.setdefault(maker.name)


def _sorted(parts: dict[str, Partition]) -> list[Partition]:
    """The parts, each after those that it depends on."""
    done: list[Partition] = []
    waiting = {name: dict(part.dependencies) for name, part in parts.items()}
    ready = [name for name, needed in waiting.items() if not needed]
    while ready:
        name = ready.pop()
        done.append(parts[name])
        for other in parts[name].dependents:
            waiting[other].pop(name)
            if not waiting[other]:
                ready.append(other)
    if len(done) != len(parts):
        raise RuntimeError("cycle exists between partitions!")
    return done


def _add_inputs(m: GraphModule, part: Partition, keep_names: bool) -> None:
    nodes = {node.name: node for node in m.graph.nodes}
    for number, name in enumerate(part.inputs):
        node = nodes[name]
        made = part.graph.placeholder(name if keep_names else f"arg_{number}", type_expr=node.type)
        made.meta = dict(node.meta)
        part.environment[node] = made


def _copy_node(
    m: GraphModule, node: Node, part: Partition, qualname_map: dict[str, str] | None, keep_name: bool
) -> None:
    target = node.target
    if node.op == "call_module":
        target = node.target.replace(".", "_")
        part.targets[target] = _get_attr(m, node.target)
        if qualname_map is not None:
            qualname_map[f"{part.submod_name}.{target}"] = node.target
    args = map_arg(node.args, lambda used: part.environment[used])
    kwargs = map_arg(node.kwargs, lambda used: part.environment[used])
    made = part.graph.create_node(
        node.op, target, args, kwargs, type_expr=node.type, name=node.name if keep_name else None
    )
    made.meta = dict(node.meta)
    part.environment[node] = made


def _assembled(m: GraphModule, order: list[Partition], tuple_return: bool) -> GraphModule:
    """The module that calls the parts one after the other."""
    graph, values, members = Graph(), {}, dict[str, Any]()
    nodes = {node.name: node for node in m.graph.nodes}
    for node in m.graph.nodes:
        if node.op == "placeholder":
            default = node.args[0] if node.args else inspect.Signature.empty
            values[node.name] = graph.placeholder(node.target, type_expr=node.type, default_value=default)
        elif node.op == "get_attr":
            values[node.name] = graph.get_attr(node.target)
            members[node.target] = _get_attr(m, node.target)
        else:
            continue
        values[node.name].meta = dict(node.meta)
    for part in order:
        results = tuple(part.environment[nodes[name]] for name in part.outputs)
        alone = len(results) == 1 and not tuple_return
        part.graph.output(results[0] if alone else results)
        members[part.submod_name] = GraphModule(part.targets, part.graph)
        called = graph.call_module(part.submod_name, tuple(values[name] for name in part.inputs))
        for number, name in enumerate(part.outputs):
            values[name] = called if alone else Proxy(called)[number].node
    graph.output(map_arg(m.graph.output_node().args[0], lambda node: values[node.name]))
    whole = GraphModule(members, graph)
    whole.meta["partition_names"] = {part.submod_name for part in order}
    return whole
