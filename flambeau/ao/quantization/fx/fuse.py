"""Making one module of modules that stand one after the other in a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....fx.graph import Graph
from ....fx.graph_module import GraphModule
from ....fx.node import Node, map_arg
from ....nn import Module
from ..backend_config import BackendConfig
from ..backend_config.native import get_native_backend_config
from ..backend_config.utils import (
    get_fuser_method_mapping,
    get_fusion_pattern_to_extra_inputs_getter,
    get_fusion_pattern_to_root_node_getter,
)
from ..utils import NodePattern
from .custom_config import FuseCustomConfig
from .fuse_handler import DefaultFuseHandler, FuseHandler
from .match_utils import _find_matches, _MatchResult

__all__ = ["FuseHandler", "fuse"]


def _innermost(node_pattern: NodePattern) -> Any:
    """The node that a pattern begins with."""
    while isinstance(node_pattern, tuple):
        node_pattern = node_pattern[-1]
    return node_pattern


def modules_of(model: Module) -> dict[str, Module]:
    """The modules of a model by name; one that has several names under each of them."""
    return dict(model.named_modules(remove_duplicate=False))


def fuse(
    model: GraphModule,
    is_qat: bool,
    fuse_custom_config: FuseCustomConfig | dict[str, Any] | None = None,
    backend_config: BackendConfig | dict[str, Any] | None = None,
) -> GraphModule:
    """A graph in which each pattern that the backend fuses is one module."""
    config = FuseCustomConfig.from_dict(fuse_custom_config) if isinstance(fuse_custom_config, dict) else fuse_custom_config  # noqa: E501  # fmt: skip
    backend = BackendConfig.from_dict(backend_config) if isinstance(backend_config, dict) else backend_config
    config, backend = config or FuseCustomConfig(), backend or get_native_backend_config()
    modules = modules_of(model)
    fusers = get_fuser_method_mapping(backend)
    roots = get_fusion_pattern_to_root_node_getter(backend)
    further = get_fusion_pattern_to_extra_inputs_getter(backend)
    matches = _find_matches(model.graph, modules, dict.fromkeys(fusers, DefaultFuseHandler))
    graph = Graph()
    made: dict[str, Node] = {}

    def load(arg: Any) -> Any:
        return map_arg(arg, lambda node: made[node.name])

    def root_of(match: _MatchResult) -> Node:
        find: Callable[[NodePattern], Node] = roots.get(match.pattern, _innermost)
        return find(match.node_pattern)

    for node in model.graph.nodes:
        match = matches.get(node.name)
        if match is None:
            made[node.name] = graph.node_copy(node, load)
        elif match.last is node:  # here all inputs of the pattern are there
            root = root_of(match)
            extra = further[match.pattern](match.node_pattern) if match.pattern in further else []
            made[node.name] = match.handler(node).fuse(
                load, modules, graph, root, extra, match.node_pattern, config, fusers, is_qat
            )
    return GraphModule(model, graph)
