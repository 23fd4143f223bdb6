"""What passes that divide graphs share, under the names of `torch.fx.passes.tools_common`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._core.tensor import Tensor
from ...nn.modules.module import Module
from .._target_names import in_torch, qualified_name
from ..graph_module import GraphModule
from ..node import Node

__all__ = ["get_acc_ops_name", "get_node_target", "is_node_output_tensor", "legalize_graph", "stable_topological_sort"]

Tensors = tuple[Tensor] | list[Tensor]
TensorOrTensors = Tensor | Tensors
NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k: Any) -> str:
    """The full name of a class or a function."""
    if isinstance(k, str):
        return k
    if k.__module__ and "acc_ops" in k.__module__:
        return f"acc_ops.{k.__name__}"
    module = in_torch(k.__module__).replace("torch._ops", "torch.ops")
    return f"{module or ''}.{k.__name__}"


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """The name of what a node calls: of a function, of a method, or of a module's class."""
    assert node.op in CALLABLE_NODE_OPS, f"Expect op types of {', '.join(CALLABLE_NODE_OPS)}, but found {node.op}"
    if node.op == "call_module":
        module = submodules[node.target]
        return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))
    if node.op == "call_function":
        return qualified_name(node.target)
    return str(node.target)


def is_node_output_tensor(node: Node) -> bool:
    """Whether a node's value is a tensor, as `ShapeProp` has noted."""
    kind = node.meta.get("type")
    return isinstance(kind, type) and issubclass(kind, Tensor)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Put the nodes in an order in which each comes after those that it takes; otherwise the order stays."""
    done: set[Node] = set()
    waiting = list(gm.graph.nodes)
    last = gm.graph._root
    while waiting:
        later: list[Node] = []
        for node in waiting:
            if all(used in done for used in node.all_input_nodes) and (node.op != "output" or node is waiting[-1]
                                                                      or not later):  # fmt: skip
                last.append(node)
                last = node
                done.add(node)
            else:
                later.append(node)
        if len(later) == len(waiting):
            raise RuntimeError(f"Input graph has cycles, unable to add {[node.name for node in later]}")
        waiting = later
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Put the graph of a module into a valid order."""
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
