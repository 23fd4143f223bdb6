"""How large what nodes make is, and other targets for nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..graph_module import GraphModule
from ..node import Node
from .shape_prop import ShapeProp, TensorMetadata

__all__ = ["get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with", "size_bytes"]


class size_bytes(NamedTuple):
    """Bytes of the result of a node, and of that with the parameters that the node uses."""

    output_size: int
    total_size: int


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Any, new_op: str, new_target: Any
) -> None:
    """Give all nodes with one op and target another op and target."""
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            node.op, node.target = new_op, new_target
    fx_module.graph.lint()


def get_tensor_meta(node: Node) -> TensorMetadata:
    """What `ShapeProp` wrote about the result of a node."""
    found: TensorMetadata | None = node.meta.get("tensor_meta")
    if not found:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run."
        )
    return found


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The bytes of a node, whose shape is known."""
    total = 0
    if node.op == "call_module":
        module = dict(fx_module.named_modules())[str(node.target)]
        total += sum(each.numel() * each.element_size() for _, each in module.named_parameters())
    about = get_tensor_meta(node)
    own = about.shape.numel() * about.dtype.itemsize
    return size_bytes(own, total + own)


def get_size_of_all_nodes(fx_module: GraphModule, args: list[Any] | None = None) -> None:
    """Write the sizes of all nodes on them, as `size_bytes`; with example inputs, after finding out the shapes."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        if "tensor_meta" in node.meta:
            holder: Any = node
            holder.size_bytes = get_size_of_node(fx_module, node)
