"""Modules made quicker for inference, under the names of `torch.fx.experimental.optimization`."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ...nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ...nn.modules.conv import Conv1d, Conv2d, Conv3d
from ...nn.modules.dropout import Dropout
from ...nn.modules.linear import Linear
from ...nn.modules.module import Module
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .._symbolic_trace import Tracer, symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node

__all__ = [
    "extract_subgraph", "fuse", "matches_module_pattern", "optimize_for_inference", "remove_dropout",
    "replace_node_module",
]  # fmt: skip

_PAIRS: tuple[tuple[type[Any], type[Any]], ...] = (
    (Conv1d, BatchNorm1d), (Conv2d, BatchNorm2d), (Conv3d, BatchNorm3d), (Linear, BatchNorm1d),
)  # fmt: skip


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Whether a node calls a module of the last class on the result of one of the class before it."""
    if not node.args or not isinstance(node.args[0], Node):
        return False
    pair = (node.args[0], node)
    return all(
        each.op == "call_module" and each.target in modules and type(modules[each.target]) is wanted
        for each, wanted in zip(pair, pattern, strict=True)
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Module) -> None:
    """Let a node call another module."""
    path, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[path], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """A module in which batch normalisations are parts of the convolutions and linear layers before them.

    It is for inference: the statistics are those of the running ones at this moment.
    """
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules: dict[str, Any] = dict(traced.named_modules())
    for pair in _PAIRS:
        for node in traced.graph.nodes:
            if not matches_module_pattern(pair, node, modules):
                continue
            before = node.args[0]
            layer, norm = modules[before.target], modules[node.target]
            if len(before.users) > 1 or not norm.track_running_stats:
                continue
            merged = (fuse_linear_bn_eval if pair[0] is Linear else fuse_conv_bn_eval)(layer, norm)
            replace_node_module(before, modules, merged)
            node.replace_all_uses_with(before)
            traced.graph.erase_node(node)
    return GraphModule(traced, traced.graph)


class _WithoutDropout(Transformer):
    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The argument itself, where the module is a dropout."""
        if isinstance(self.submodules[target], Dropout):
            assert len(args) == 1
            return args[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model: Module) -> Module:
    """A module without its dropout layers."""
    return _WithoutDropout(symbolic_trace(model)).transform()


def extract_subgraph(
    orig_module: Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]
) -> GraphModule:  # fmt: skip
    """A module of some nodes of a graph: it takes the values of `inputs` and returns the list of those of `outputs`."""
    graph = Graph()
    copies = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        copies[node] = graph.node_copy(node, lambda used: copies[used])
    graph.output([copies[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


def optimize_for_inference(
    model: Module, pass_config: dict[str, Any] | None = None, tracer: type[Tracer] = Tracer
) -> Module:  # fmt: skip
    """A module for inference: batch normalisations are parts of the layers before them, and dropout layers are gone.

    Kernels take tensors as they lie in memory, so that the third of PyTorch's passes, which changes that, is none.
    """
    config = pass_config or {}
    if config.get("conv_bn_fuse", True):
        model = fuse(model)
    if config.get("remove_dropout", True):
        model = remove_dropout(model)
    layout = config.get("mkldnn_layout_optimize", {"heuristic": None})
    if layout is not False and not isinstance(layout, dict):
        raise RuntimeError("mkldnn_layout_optimize config is not a dict")
    if layout is not False and "heuristic" not in layout:
        raise RuntimeError("Heuristic not found in mkldnn_layout_optimize config")
    return model
