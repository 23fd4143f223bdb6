"""Groups of nodes that came from one module or function of the program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...graph import Graph
from ...node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """Nodes, what they came from, what they take, what they give to others, and their parameters."""

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """The groups for each wanted source: a class of modules, or a function."""
    groups: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        stack = node.meta.get("source_fn_stack")
        if not stack:
            continue
        name, source = stack[-1]
        if source in wanted_sources:
            groups.setdefault(source, {}).setdefault(name, []).append(node)

    def partition(nodes: list[Node], source: Any) -> SourcePartition:
        own = set(nodes)
        inputs: dict[Node, None] = {}
        params: dict[Node, None] = {}
        outputs: dict[Node, None] = {}
        for node in nodes:
            for each in node.all_input_nodes:
                if each.op == "get_attr":
                    params[each] = None
                elif each not in own:
                    inputs[each] = None
            if node.op == "get_attr":
                params[node] = None
            outputs.update((node, None) for user in node.users if user not in own)
        return SourcePartition(nodes, source, list(inputs), list(outputs), list(params))

    found = {source: [partition(nodes, source) for nodes in by_name.values()] for source, by_name in groups.items()}
    if filter_fn is None:
        return found
    kept = {
        source: [each for each in parts if all(map(filter_fn, each.output_nodes))] for source, parts in found.items()
    }
    return {source: parts for source, parts in kept.items() if parts}


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Whether the second group takes something that the first gives."""
    given = set(subgraph1.nodes)
    return any(each in given for node in reversed(subgraph2.nodes) for each in node.all_input_nodes)
