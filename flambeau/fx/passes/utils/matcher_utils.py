"""Places of a graph that look like another graph, under the names of `torch.fx.passes.utils.matcher_utils`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...._core.tensor import Tensor
from ....utils._pytree import tree_flatten
from ...graph import Graph
from ...graph_module import _get_attr
from ...node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """A place that a pattern fits: which node of the pattern is which of the graph."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    """What stands for the inputs of the pattern, in their order."""
    returning_nodes: list[Node] = field(default_factory=list)
    """What stands for the values that the pattern returns."""
    name_node_map: dict[str, Node] = field(default_factory=dict)


class SubgraphMatcher:
    """Finds the places of a graph that a pattern fits. Its inputs fit everything."""

    def __init__(
        self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False,
        remove_overlapping_matches: bool = True, ignore_literals: bool = False,
    ) -> None:  # fmt: skip
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            assert node.op == "output" or node.users or node.is_impure(), (
                "SubgraphMatcher cannot be initialized with an pattern with dead code"
            )
        self.pattern_placeholder_nodes = [node for node in pattern.nodes if node.op == "placeholder"]
        output = next(iter(reversed(pattern.nodes)))
        self.pattern_returning_nodes = output.all_input_nodes
        # A value that is only returned ends the pattern: what it fits is where the search begins.
        self.pattern_anchors = (
            [output] if match_output else [node for node in output.all_input_nodes if len(node.users) == 1]
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places that do not overlap, in the order of the graph."""
        fitting = [
            [node for node in graph.nodes if self._alike(anchor, node, node_name_match)]
            for anchor in self.pattern_anchors
        ]
        found = [each for each in self._combinations(fitting, node_name_match) if self._is_closed(each)]
        for each in found:
            each.placeholder_nodes = [each.nodes_map[node] for node in self.pattern_placeholder_nodes
                                      if node in each.nodes_map]  # fmt: skip
            each.returning_nodes = [each.nodes_map[node] for node in self.pattern_returning_nodes]
            each.name_node_map = {p.name: g for p, g in each.nodes_map.items() if isinstance(g, Node)}
        found = [each for each in found if len(each.placeholder_nodes) == len(self.pattern_placeholder_nodes)]
        return self._without_overlaps(found) if self.remove_overlapping_matches else found

    def _combinations(self, fitting: list[list[Node]], name: str) -> Iterator[InternalMatch]:
        """Every way in which all anchors of the pattern fit at once."""

        def extended(match: InternalMatch, number: int) -> Iterator[InternalMatch]:
            if number == len(self.pattern_anchors):
                yield match
                return
            for node in fitting[number]:
                trial = InternalMatch([*match.anchors, node], dict(match.nodes_map))
                if self._fits(self.pattern_anchors[number], node, trial, name):
                    yield from extended(trial, number + 1)

        if self.pattern_anchors:
            yield from extended(InternalMatch([]), 0)

    def _alike(self, pattern: Node, node: Node, name: str = "") -> bool:
        """Whether one node alone fits another."""
        if pattern.op == "placeholder" and not self.match_placeholder:
            return True
        if name and name in node.name:
            return True
        if pattern.op != node.op:
            return False
        if pattern.op == "get_attr":
            values = [_get_attr(each.graph.owning_module, each.target) for each in (pattern, node)
                      if each.graph.owning_module is not None]  # fmt: skip
            return len(values) == 2 and type(values[0]) is type(values[1]) and isinstance(values[0], Tensor)
        return pattern.op in ("placeholder", "output") or pattern.target == node.target

    def _fits(self, pattern: Node, node: Any, match: InternalMatch, name: str) -> bool:
        """Whether a node, and all that it is made of, fits; notes what is which."""
        if pattern in match.nodes_map:
            return match.nodes_map[pattern] is node
        if not isinstance(node, Node):  # a constant may stand for an input of the pattern
            if pattern.op != "placeholder":
                return False
            match.nodes_map[pattern] = node
            return True
        if node in match.nodes_map.values() or not self._alike(pattern, node, name):
            return False
        before = dict(match.nodes_map)
        match.nodes_map[pattern] = node
        if pattern.op == "placeholder" or self._arguments_fit(pattern, node, match, name):
            return True
        match.nodes_map.clear()
        match.nodes_map.update(before)
        return False

    def _arguments_fit(self, pattern: Node, node: Node, match: InternalMatch, name: str) -> bool:
        ours, theirs = _arguments(pattern, node)
        if len(ours) != len(theirs):
            return False
        return all(self._argument_fits(p, g, match, name) for p, g in zip(ours, theirs, strict=True))

    def _argument_fits(self, pattern: Any, value: Any, match: InternalMatch, name: str) -> bool:
        if isinstance(pattern, Node):
            return self._fits(pattern, value, match, name)
        if isinstance(value, Node):
            return False
        if isinstance(pattern, (list, tuple)) and isinstance(value, (list, tuple)):
            return len(pattern) == len(value) and all(
                self._argument_fits(p, g, match, name) for p, g in zip(pattern, value, strict=True)
            )
        return self.ignore_literals or (type(pattern) is type(value) and bool(pattern == value))

    def _is_closed(self, match: InternalMatch) -> bool:
        """Whether only what is returned is used outside of the place."""
        inside = {g for p, g in match.nodes_map.items() if p.op != "placeholder"}
        return all(
            p in self.pattern_returning_nodes or all(user in inside for user in g.users)
            for p, g in match.nodes_map.items()
            if p.op != "placeholder"
        )

    @staticmethod
    def _without_overlaps(matches: list[InternalMatch]) -> list[InternalMatch]:
        taken: set[Node] = set()
        kept = []
        for match in matches:
            own = {g for p, g in match.nodes_map.items() if p.op not in ("placeholder", "output")}
            if not own & taken:
                taken |= own
                kept.append(match)
        return kept


def _arguments(pattern: Node, node: Node) -> tuple[list[Any], list[Any]]:
    """The arguments of two nodes side by side, by their names where the target has a signature."""
    if pattern.op == "call_function" and len(pattern.args) != len(node.args):
        first, second = (each.normalized_arguments(None, normalize_to_only_use_kwargs=True) for each in (pattern, node))
        if first is not None and second is not None and list(first.kwargs) == list(second.kwargs):
            return list(first.kwargs.values()), list(second.kwargs.values())
    if sorted(pattern.kwargs) != sorted(node.kwargs):
        return [0], []
    names = sorted(pattern.kwargs)
    leaves = (tree_flatten([*each.args, *(each.kwargs[key] for key in names)])[0] for each in (pattern, node))
    ours, theirs = leaves
    return ours, theirs
