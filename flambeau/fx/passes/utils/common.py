"""Parts of graphs as modules, under the names of `torch.fx.passes.utils.common`."""

from __future__ import annotations

from typing import Any

from ....nn.modules.module import Module
from ...graph import Graph
from ...graph_module import GraphModule, _get_attr
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """Holds modules by name."""

    def __init__(self, d: dict[str, Any]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """A graph with the members of a module that it names, as a module of its own; and what each was called before."""
    members = {
        node.target: _get_attr(gm, node.target) for node in subgraph.nodes if node.op in ("call_module", "get_attr")
    }
    paths = {f"{comp_name}.{target}" if comp_name else target: target for target in members}
    return GraphModule(members, subgraph, class_name), paths


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs are the same but for names."""
    matcher = SubgraphMatcher(left, match_output=True, match_placeholder=True)
    return len(matcher.match(right)) > 0
