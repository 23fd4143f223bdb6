"""What makes a graph well formed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._ops.tensor.predicates import typename
from ..nn.modules.module import Module

if TYPE_CHECKING:
    from .graph import Graph
    from .node import Node
else:  # what annotations mean at run time, when those modules are not there yet
    Graph = Node = Any


def existing_reference(module: Any, qualified_name: str) -> bool:
    """Whether a module has an attribute of that path which the code of a graph may read."""
    *path, name = qualified_name.split(".")
    try:
        owner = module.get_submodule(".".join(path))
    except AttributeError:
        return False
    return hasattr(owner, name) and getattr(owner, name) is not None


def check(graph: Graph) -> None:
    """An error that says what is wrong with a graph, if something is."""
    from .node import _legal_ops

    names: set[str] = set()
    seen: set[Node] = set()
    for node in graph.nodes:
        if node.op not in _legal_ops:
            raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
        if node.graph is not graph:
            raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
        if node not in graph._table:
            raise RuntimeError(f"Node '{node}' is not added to the side table")
        for arg in node._input_nodes:
            _check_argument(graph, node, arg, seen)
        seen.add(node)
        if node.name in names:
            raise RuntimeError(f"Node redefined name {node.name}!")
        names.add(node.name)
    if graph.owning_module is not None:
        for node in graph.nodes:
            _check_target(node, graph.owning_module)


def _check_argument(graph: Graph, node: Node, arg: Node, seen: set[Node]) -> None:
    if arg.graph is not graph:
        raise RuntimeError(
            f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you "
            "are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap "
            f"values\n{graph}"
        )
    if arg not in seen:
        raise RuntimeError(
            f"Argument '{arg}' of Node '{node}' was used before it has been defined! Please check that Nodes in the "
            f"graph are topologically ordered\n{graph}"
        )


def _check_target(node: Node, module: Module) -> None:
    wanted = callable(node.target) if node.op == "call_function" else isinstance(node.target, str)
    if not wanted:
        what = "a Callable" if node.op == "call_function" else "a str"
        raise ValueError(f"Node {node} target {node.target} has type {typename(node.target)} but {what} is expected")
    if node.op not in ("get_attr", "call_module"):
        return
    found: Any = module
    path = node.target.split(".")
    for number, name in enumerate(path):
        so_far = ".".join(path[:number])
        found = getattr(found, name, None)
        if found is None:
            raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {name} of {so_far}")
        if node.op == "call_module" and not isinstance(found, Module):
            raise RuntimeError(f"Node {node} target {node.target} {name} of {so_far} does not reference an nn.Module")
