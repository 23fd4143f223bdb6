"""What does not depend on inputs, computed once, under the names of `torch.fx.experimental.const_fold`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core.tensor import Tensor
from ..._ops.create.constants import empty
from ...autograd.grad_mode import no_grad
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule, _copy_attr
from ..node import Node

__all__ = ["FoldedGraphModule", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A module whose constant part runs once, at the first call; its results are attributes from then on."""

    def __init__(
        self, root: Module, graph: Graph, const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None, device_for_folded_attrs: str = "cuda",
    ) -> None:  # fmt: skip
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.has_folding_been_run = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Compute the constant part."""
        assert not self.has_folding_been_run, "the constant part has been computed already"
        self.has_folding_been_run = True
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        with no_grad():
            results = self.const_subgraph_module()
        for number, value in enumerate(results):
            name = f"{self.fx_const_folded_attrs_name}_{number}"
            trained = isinstance(value, Tensor) and value.requires_grad
            delattr(self, name)
            setattr(self, name, Parameter(value, trained) if isinstance(value, Tensor) else value)


def split_const_subgraphs(
    module: Module | GraphModule, skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:  # fmt: skip
    """A module in which all that depends on no input is computed once."""
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant: set[Node] = set()
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output") or (skip_folding_node_fn is not None and skip_folding_node_fn(node)):
            continue
        if node.op == "get_attr" or (
            node.all_input_nodes and not node.is_impure() and all(each in constant for each in node.all_input_nodes)
        ):
            constant.add(node)
    folded = [
        node
        for node in traced.graph.nodes
        if node in constant and node.op != "get_attr" and any(user not in constant for user in node.users)
    ]
    root = Module()
    for node in traced.graph.nodes:
        if node.op in ("get_attr", "call_module"):
            _copy_attr(traced, root, node.target)
    if not folded:
        return FoldedGraphModule(root, traced.graph)
    prefix = "_FX_CONST_FOLDED_ATTRS"
    inner, outer = Graph(), Graph()
    values: dict[Node, Any] = {}
    for node in traced.graph.nodes:
        if node in constant:
            values[node] = inner.node_copy(node, lambda each: values[each])
    inner.output(tuple(values[node] for node in folded))
    kept: dict[Node, Any] = {}
    for node in traced.graph.nodes:
        if node in folded:
            name = f"{prefix}_{folded.index(node)}"
            setattr(root, name, Parameter(_nothing(), False))
            kept[node] = outer.get_attr(name)
        elif node.op == "output":
            outer.node_copy(node, lambda each: kept[each])
        elif node not in constant or any(user not in constant for user in node.users):
            kept[node] = outer.node_copy(node, lambda each: kept[each])
    return FoldedGraphModule(root, outer, inner, prefix, device_for_folded_attrs)


def _nothing() -> Tensor:
    return empty(0)
