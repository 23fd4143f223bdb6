"""Finding patterns in a graph."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ....fx.graph import Graph
from ....fx.node import Node
from ....nn.modules.module import Module
from ....nn.utils.parametrize import type_before_parametrizations
from ..utils import MatchAllNode, NodePattern, Pattern

__all__: list[str] = []


class _MatchResult(NamedTuple):
    """A pattern that was found: its last node, all its nodes, the nodes in its form, the pattern, and its handler."""

    last: Node
    nodes: list[Node]
    node_pattern: NodePattern
    pattern: Pattern
    handler: Any


def _calls(node: Node, part: Any, modules: dict[str, Module]) -> bool:
    if isinstance(part, type) and issubclass(part, Module):
        return node.op == "call_module" and bool(type_before_parametrizations(modules[str(node.target)]) is part)
    if isinstance(part, str):
        return node.op == "call_method" and node.target == part
    return node.op == "call_function" and node.target is part


def _nodes_in_form(modules: dict[str, Module], node: Any, pattern: Pattern, max_uses: int = sys.maxsize) -> NodePattern:
    """The nodes that a pattern stands for, nested as it is; None if it does not fit.

    All but the last node have one use alone: what others see must be computed.
    """
    part, *inputs = pattern if isinstance(pattern, tuple) else (pattern,)
    if part is MatchAllNode:
        return node
    if not isinstance(node, Node) or len(node.users) > max_uses or not _calls(node, part, modules):
        return None
    if not inputs:
        return node
    if len(inputs) != len(node.args):
        return None
    found = [_nodes_in_form(modules, arg, each, 1) for arg, each in zip(node.args, inputs, strict=True)]
    return None if any(each is None for each in found) else (node, *found)


def _is_match(modules: dict[str, Module], node: Any, pattern: Pattern, max_uses: int = sys.maxsize) -> bool:
    """Whether a node is the last of a pattern."""
    return _nodes_in_form(modules, node, pattern, max_uses) is not None


def flat_nodes(node_pattern: NodePattern, pattern: Pattern) -> Iterator[Node]:
    """The nodes of a pattern that was found, the last first; what fits anything is none of them."""
    if isinstance(pattern, tuple):
        for each, own in zip(node_pattern, pattern, strict=True):
            yield from flat_nodes(each, own)
    elif pattern is not MatchAllNode:
        yield node_pattern


def _length(pattern: Pattern) -> int:
    return sum(map(_length, pattern)) if isinstance(pattern, tuple) else 1


def longest_first(patterns: Iterable[Pattern]) -> list[Pattern]:
    """Patterns in the order in which they are tried."""
    return sorted(patterns, key=_length, reverse=True)


def _find_matches(graph: Graph, modules: dict[str, Module], patterns: dict[Pattern, Any]) -> dict[str, _MatchResult]:
    """The pattern that each node is a part of, by the node's name; nodes of no pattern are left out."""
    found: dict[str, _MatchResult] = {}
    ordered = longest_first(patterns)
    for node in reversed(graph.nodes):
        if node.name in found or node.op in ("placeholder", "output", "get_attr"):
            continue
        for pattern in ordered:
            nodes = _nodes_in_form(modules, node, pattern)
            if nodes is None:
                continue
            own = list(flat_nodes(nodes, pattern))
            if not any(each.name in found for each in own):
                result = _MatchResult(node, own, nodes, pattern, patterns[pattern])
                found.update((each.name, result) for each in own)
                break
    return found
