"""Products that share their right operand, as one product of joined rows."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import flambeau

from .._symbolic_trace import symbolic_trace
from ..graph_module import GraphModule
from ..node import Node
from ..passes.tools_common import legalize_graph

__all__ = ["are_nodes_independent", "may_depend_on", "merge_matmul", "split_result_tensors"]


def split_result_tensors(result: Any, inputs: list[Any]) -> tuple[Any, ...]:
    """The rows of a joined product that belong to each of the operands."""
    if isinstance(result, flambeau.fx.Proxy):
        sizes = [0] * len(inputs)
    else:
        sizes = [each.shape[0] for each in inputs]
    return flambeau.split(result, sizes)


def may_depend_on(a: Node, b: Node, search_depth: int = 6) -> bool:
    """Whether a node may need another: it does, or the search had to end."""
    if a == b:
        return True
    if not a.all_input_nodes:
        return False
    if search_depth == 0:
        return True
    return any(may_depend_on(each, b, search_depth - 1) for each in a.all_input_nodes)


def are_nodes_independent(nodes: list[Node]) -> bool:
    """Whether none of the nodes may need another."""
    pairs = itertools.combinations(nodes, 2)
    return not any(may_depend_on(left, right) or may_depend_on(right, left) for left, right in pairs)


def merge_matmul(in_mod: Any) -> GraphModule:
    """A traced module in which products with the same right operand are one."""
    gm = symbolic_trace(in_mod)
    groups: dict[Any, list[Node]] = {}
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target is flambeau.matmul:
            right = node.args[1]
            key = right.target if right.op == "get_attr" else right
            groups.setdefault(key, []).append(node)
    for found in groups.values():
        if len(found) < 2 or not are_nodes_independent(found):
            continue
        lefts, right = [node.args[0] for node in found], found[0].args[1]
        with gm.graph.inserting_before(found[0]):
            joined = gm.graph.call_function(flambeau.cat, (lefts,), {})
            product = gm.graph.call_function(flambeau.matmul, (joined, right), {})
            parts = gm.graph.call_function(split_result_tensors, (product, lefts), {})
        for at, node in enumerate(found):
            with gm.graph.inserting_before(node):
                piece = gm.graph.call_function(operator.getitem, (parts, at), {})
            node.replace_all_uses_with(piece)
            gm.graph.erase_node(node)
        legalize_graph(gm)
    gm.recompile()
    gm.graph.lint()
    return gm
