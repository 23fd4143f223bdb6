"""Nodes of a graph as a module of their own, in one call."""

from __future__ import annotations

import copy
import operator
from collections import deque
from collections.abc import Sequence
from typing import Any

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ..tools_common import legalize_graph
from .common import lift_subgraph_as_module

__all__ = [
    "erase_nodes", "fuse_as_graphmodule", "fuse_by_partitions", "insert_subgm", "topo_sort", "validate_partition",
]  # fmt: skip


def topo_sort(nodes: list[Node]) -> list[Node]:
    """Nodes in an order in which each stands after those that it needs."""
    own = set(nodes)
    waiting = {node: sum(each in own for each in node.all_input_nodes) for node in nodes}
    ready = deque(node for node in nodes if not waiting[node])
    found: list[Node] = []
    while ready:
        node = ready.popleft()
        found.append(node)
        for user in node.users:
            if user in own:
                waiting[user] -= 1
                if not waiting[user]:
                    ready.append(user)
    if len(found) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return found


def validate_partition(partition: list[Node]) -> bool:
    """Whether nodes can become one: nothing that comes after one of them outside leads back to another."""
    own = set(partition)
    outside = [user for node in partition for user in node.users if user not in own]
    seen: set[Node] = set()
    while outside:
        node = outside.pop()
        if node in own:
            return False
        if node not in seen:
            seen.add(node)
            outside.extend(node.users)
    return True


def fuse_as_graphmodule(
    gm: GraphModule, nodes: list[Node], module_name: str, partition_lookup_table: Any = None, *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:  # fmt: skip
    """A module of these nodes, which must be in order; the nodes that it takes, and those whose results others need."""
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node not in gm.graph.nodes:
            raise AssertionError(f"{node} is not found in graph module {gm._get_name()}")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    own = set(nodes)
    subgraph = Graph()
    inputs: dict[Node, Node] = {}
    inner: dict[Node, Node] = {}

    def inside(node: Node) -> Node:
        if node in inner:
            return inner[node]
        inputs[node] = inner[node] = subgraph.placeholder(node.name, type_expr=node.type)
        inner[node].meta = copy.copy(node.meta)
        return inner[node]

    for node in nodes:
        inner[node] = subgraph.node_copy(node, inside)
    outputs = tuple(node for node in nodes if any(user not in own for user in node.users))
    results = tuple(inner[node] for node in outputs)
    subgraph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    subgraph.lint()
    made, _ = lift_subgraph_as_module(gm, subgraph, comp_name="", class_name=module_name)
    return made, tuple(inputs), outputs


def insert_subgm(
    gm: GraphModule, sub_gm: GraphModule, orig_inputs: tuple[Node, ...], orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:  # fmt: skip
    """A call of a module in the place of the nodes whose results it gives."""
    name = sub_gm.__class__.__name__
    gm.add_submodule(name, sub_gm)
    where = insertion_point or gm.graph.output_node()
    with gm.graph.inserting_before(where):
        call = gm.graph.call_module(name, args=orig_inputs, kwargs=None)
        output = sub_gm.graph.output_node()
        if len(orig_outputs) == 1 and not isinstance(output.args[0], tuple):
            orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        else:
            for at, each in enumerate(orig_outputs):
                part = gm.graph.call_function(operator.getitem, (call, at))
                each.replace_all_uses_with(part, propagate_meta=True)
            call.meta["val"] = tuple(each.meta.get("val") for each in orig_outputs)
    return gm


def erase_nodes(gm: GraphModule, nodes: list[Node]) -> None:
    """Take nodes out of a graph, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: Sequence[Any], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """Each set of nodes as one call of a module, named by a number after `prefix`."""
    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        made, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, made, inputs, outputs, insertion_point=nodes[-1].next)
        erase_nodes(gm, nodes)
    return legalize_graph(gm)
