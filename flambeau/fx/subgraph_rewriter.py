"""Patterns in a graph, replaced by others, under the names of `torch.fx.subgraph_rewriter`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..nn.modules.module import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _has_attr
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place that the pattern fitted: its last node, and which node of the pattern is which of the graph."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A place where a pattern was found, with the nodes that stand there now."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


Pattern = Any
"""A function, a graph or a module of one. (Callable | Module, asked by `isinstance`, makes the type checker crash.)"""
Filter = Callable[[InternalMatch, Graph, Graph], bool]


def replace_pattern(gm: GraphModule, pattern: Pattern, replacement: Pattern) -> list[Match]:
    """Replace every place of a module's graph that `pattern` fits; both are functions, graphs or modules.

    >>> traced = flambeau.fx.symbolic_trace(lambda x: flambeau.relu(x) + flambeau.relu(2 * x))
    >>> matches = flambeau.fx.replace_pattern(traced, lambda x: flambeau.relu(x), lambda x: flambeau.tanh(x))
    >>> print(len(matches), traced.code.count("tanh("))
    2 2

    Args:
        gm (GraphModule): the module; its graph changes.
        pattern (Pattern): what to look for.
        replacement (Pattern): what to put there; it has the same parameters.

    Returns:
        the places.
    """
    return [Match(each.anchor, each.nodes_map) for each in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Pattern, replacement: Pattern | None = None, match_filters: list[Filter] | None = None,
    ignore_literals: bool = False, replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:  # fmt: skip
    """Replace a pattern where all filters accept; a callback may make the replacement of each place."""
    wanted = _graph_of(pattern)
    matcher = SubgraphMatcher(wanted, ignore_literals=ignore_literals)
    found = [
        each
        for each in matcher.match(gm.graph, node_name_match=node_name_match)
        if all(accepts(each, gm.graph, wanted) for accepts in match_filters or ())
    ]
    common = None if replacement is None else _graph_of(replacement)
    moved: dict[Node, Node] = {}
    replaced = []
    for match in found:
        new = common if replacement_callback is None else replacement_callback(match, gm.graph, wanted)
        assert new is not None, "Must provide either a replacement GraphModule or a replacement callback"
        replaced.append(_replace(gm.graph, match, new, moved))
    gm.recompile()
    if isinstance(replacement, Module):
        _copy_members(gm, replacement)
    return replaced


def _graph_of(pattern: Any) -> Graph:
    if isinstance(pattern, GraphModule):
        return pattern.graph
    return pattern if isinstance(pattern, Graph) else symbolic_trace(pattern).graph


def _replace(graph: Graph, match: InternalMatch, new: Graph, moved: dict[Node, Node]) -> ReplacedPatterns:
    """Put `new` in one place; `moved` says what became of nodes that earlier replacements took out."""
    inputs = [node for node in new.nodes if node.op == "placeholder"]
    assert len(inputs) == len(match.placeholder_nodes), (
        f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(inputs)}"
    )
    match.nodes_map = {key: moved.get(node, node) if isinstance(node, Node) else node
                       for key, node in match.nodes_map.items()}  # fmt: skip
    match.placeholder_nodes = [moved.get(each, each) if isinstance(each, Node) else each
                               for each in match.placeholder_nodes]  # fmt: skip
    values: dict[Node, Any] = dict(zip(inputs, match.placeholder_nodes, strict=True))
    users = {user for node in match.returning_nodes for user in node.users}
    place = next((node for node in graph.nodes if node in users), None)
    with graph.inserting_before(place or max(match.returning_nodes).next):
        result = graph.graph_copy(new, values)
    results = (result,) if isinstance(result, Node) else tuple(result)
    assert len(results) == len(match.returning_nodes), (
        f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}"
    )
    for old, now in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(now)
        moved[old] = now
    for node in reversed(match.nodes_map):
        if node.op not in ("placeholder", "output"):
            old = match.nodes_map[node]
            if not old.users and not old._erased:
                graph.erase_node(old)
    for old in sorted((g for p, g in match.nodes_map.items() if p.op not in ("placeholder", "output")
                       and not g._erased), reverse=True):  # fmt: skip
        graph.erase_node(old)
    made = [value for key, value in values.items() if key not in inputs]
    return ReplacedPatterns(match.anchors[0], match.nodes_map, made)


def _copy_members(gm: GraphModule, replacement: Module) -> None:
    """Give the module what the replacement reads and calls, and take out what nobody calls any more."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr") and not _has_attr(gm, node.target):
            if not _has_attr(replacement, node.target):
                raise RuntimeError(
                    f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, '
                    "but the referenced attribute does not exist in the replacement GraphModule"
                )
            value = replacement
            for name in node.target.split("."):
                value = getattr(value, name)
            if node.op == "call_module":
                gm.add_submodule(node.target, copy.deepcopy(value))
            else:
                path, _, name = node.target.rpartition(".")
                setattr(gm.get_submodule(path), name, copy.deepcopy(value))
    gm.graph.lint()
