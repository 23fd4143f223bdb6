"""Equal calls once: later ones take the result of the first."""

from __future__ import annotations

from typing import Any

import flambeau

from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node
from ...infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]

_DRAWING = (
    "dropout", "_fused_dropout", "_standard_gamma", "bernoulli", "multinomial", "native_dropout", "normal", "poisson",
    "binomial", "rrelu", "rand_like", "rand", "randint", "randn", "randperm",
)  # fmt: skip
_CHANGING = (
    "add_", "sub_", "mul_", "div_", "pow_", "lerp_", "relu_", "sigmoid_", "tanh_", "empty_like", "empty", "bernoulli_",
    "normal_", "uniform_", "copy_", "fill_", "zero_",
)  # fmt: skip


def get_CSE_banned_ops() -> set[Any]:
    """Operators whose calls differ though their arguments are equal: they draw numbers, or change a tensor."""
    aten = flambeau.ops.aten
    return {getattr(aten, name) for name in (*_DRAWING, *_CHANGING) if hasattr(aten, name)}


class CSEPass(PassBase):
    """Leaves one of several calls with equal arguments."""

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        super().__init__()
        self.banned_ops = set() if banned_ops is None else banned_ops

    def call(self, graph_module: GraphModule) -> PassResult:
        """A module without the repetitions."""
        made = Graph()
        copies: dict[Node, Node] = {}
        first: dict[Any, Node] = {}
        changed = False
        for node in graph_module.graph.nodes:
            target: Any = node.target
            packet = getattr(target, "overloadpacket", target)
            if node.op in ("placeholder", "output", "get_attr") or packet in self.banned_ops:
                copies[node] = made.node_copy(node, copies.__getitem__)
                continue
            key = (node.op, target, repr(_plain(node.args, copies)), repr(_plain(node.kwargs, copies)))
            if key in first:
                copies[node] = first[key]
                changed = True
            else:
                copies[node] = first[key] = made.node_copy(node, copies.__getitem__)
        return PassResult(GraphModule(graph_module, made), changed)


def _plain(value: Any, copies: dict[Node, Node]) -> Any:
    """Arguments with numbers in the place of nodes, the same for nodes that have been found equal."""
    if isinstance(value, Node):
        return "node", id(copies[value])
    if isinstance(value, (list, tuple)):
        return [_plain(each, copies) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each, copies) for name, each in value.items()}
    return type(value).__name__, value
