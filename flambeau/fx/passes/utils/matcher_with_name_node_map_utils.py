"""Matches of a pattern whose output also names some of its nodes."""

from __future__ import annotations

from typing import Any

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from .matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A pattern that returns `(results, {"name": node})`: matches say which node of the graph has each name."""

    def __init__(
        self, pattern_gm: GraphModule, match_output: bool = False, match_placeholder: bool = False,
        remove_overlapping_matches: bool = True, ignore_literals: bool = False,
    ) -> None:  # fmt: skip
        given: Any = pattern_gm.graph.output_node().args[0]
        *results, names = given
        if not isinstance(names, dict):
            raise AssertionError("the last result of the pattern must be a dictionary from names to nodes")
        pattern = Graph()
        copies: dict[Node, Node] = {}
        pattern.graph_copy(pattern_gm.graph, copies)
        kept = [copies[each] for each in _flat(results)]
        pattern.output(kept[0] if len(kept) == 1 else tuple(kept))
        self.name_node_map = {name: copies[each] for name, each in names.items()}
        super().__init__(pattern, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The matches, with `name_node_map`."""
        matches = super().match(graph, node_name_match)
        for each in matches:
            each.name_node_map = {name: each.nodes_map[node] for name, node in self.name_node_map.items()}
        return matches


def _flat(values: Any) -> list[Node]:
    if isinstance(values, Node):
        return [values]
    return [node for each in values for node in _flat(each)]
