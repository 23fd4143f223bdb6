"""Making one module of the modules of a pattern."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import flambeau as torch

from .... import nn
from ....fx.graph import Graph
from ....fx.node import Node
from ....nn import functional as F
from ....nn.modules.module import Module
from ..fuser_method_mappings import get_fuser_method_new
from ..utils import NodePattern, Pattern
from .custom_config import FuseCustomConfig

__all__ = ["DefaultFuseHandler", "FuseHandler"]

_MODULES_FOR_FUNCTIONS: dict[Any, Callable[[], Module]] = {
    F.relu: nn.ReLU,
    F.leaky_relu: nn.LeakyReLU,
    torch.relu: nn.ReLU,
    torch.tanh: nn.Tanh,
}


class FuseHandler(ABC):
    """What puts one node in the place of a pattern's."""

    @abstractmethod
    def __init__(self, node: Node) -> None: ...

    @abstractmethod
    def fuse(
        self,
        load_arg: Callable[[Any], Any],
        named_modules: dict[str, Module],
        fused_graph: Graph,
        root_node: Node,
        extra_inputs: list[Any],
        matched_node_pattern: NodePattern,
        fuse_custom_config: FuseCustomConfig,
        fuser_method_mapping: dict[Pattern, Any],
        is_qat: bool,
    ) -> Node:
        """The node of the new graph; the fused module stands under the name of the root's."""


def set_module(modules: dict[str, Module], path: str, module: Module) -> None:
    """Put a module into the place of one of a model whose modules are known by name."""
    parent, _, last = path.rpartition(".")
    setattr(modules[parent], last, module)
    modules[path] = module


class DefaultFuseHandler(FuseHandler):
    """The handler that calls what the backend names for a pattern."""

    def __init__(self, node: Node) -> None:
        pass

    def fuse(
        self,
        load_arg: Callable[[Any], Any],
        named_modules: dict[str, Module],
        fused_graph: Graph,
        root_node: Node,
        extra_inputs: list[Any],
        matched_node_pattern: NodePattern,
        fuse_custom_config: FuseCustomConfig,
        fuser_method_mapping: dict[Pattern, Any],
        is_qat: bool,
    ) -> Node:
        """The root's node with the module that all of the pattern has become."""
        if root_node.op != "call_module":
            raise AssertionError("Expecting module node to be a call_module Node")

        def part(node: Any) -> Any:
            if isinstance(node, tuple):
                return tuple(map(part, node))
            if isinstance(node, Node) and node.op == "call_module":
                return named_modules[str(node.target)]
            if isinstance(node, Node) and node.target in _MODULES_FOR_FUNCTIONS:
                made = _MODULES_FOR_FUNCTIONS[node.target]()
                return made.train(named_modules[str(root_node.target)].training)
            return node.target if isinstance(node, Node) and node.op == "call_function" else node

        def kind(node: Any, own: Any) -> Any:
            if isinstance(own, tuple):
                return tuple(map(kind, node, own))
            if isinstance(node, Node) and node.op == "call_function" and own in (operator.add, torch.add):
                return node.target
            return type(own) if isinstance(own, Module) else own

        parts = part(matched_node_pattern)
        fuser = get_fuser_method_new(kind(matched_node_pattern, parts), fuser_method_mapping)
        set_module(named_modules, str(root_node.target), fuser(is_qat, *parts))
        made = fused_graph.node_copy(root_node, load_arg)
        made.args = (*made.args, *(load_arg(each) for each in extra_inputs))
        return made
