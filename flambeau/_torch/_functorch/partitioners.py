"""`torch._functorch.partitioners`: a graph of a call and its derivative, cut into the graphs of both."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node

__all__ = ["default_partition", "draw_graph", "min_cut_rematerialization_partition"]

_COSTLY = frozenset({
    "_scaled_dot_product_attention", "addmm", "baddbmm", "bmm", "convolution", "convolution_backward", "cumprod",
    "cumsum", "embedding", "index_put", "linear", "mm", "native_dropout", "scaled_dot_product_attention", "scatter",
    "sort", "topk",
})  # fmt: skip
"""Operators whose results are worth their memory, or are others the next time."""


def default_partition(
    joint_module: GraphModule,
    _joint_inputs: Any,
    *,
    num_fwd_outputs: int,
    static_lifetime_input_indices: list[int] | None = None,
    static_lifetime_input_nodes: Any = None,
) -> tuple[GraphModule, GraphModule]:
    """Cut a joint graph so that nothing is computed twice: all that backward needs of forward is kept.

    Args:
        joint_module (GraphModule): a graph whose inputs are named `primals_1`, ..., then `tangents_1`, ..., and whose
            outputs are those of the call, then the gradients.
        _joint_inputs: not used.
        num_fwd_outputs (int): how many outputs are those of the call.
        static_lifetime_input_indices: not used.
        static_lifetime_input_nodes: not used.

    Returns:
        tuple[GraphModule, GraphModule]: the graph of the call, whose further outputs are what the other one needs; and
        that of the derivative.
    """
    joint = _Joint(joint_module, num_fwd_outputs)
    return joint.cut(joint.border())


def min_cut_rematerialization_partition(
    joint_module: GraphModule,
    _joint_inputs: Any,
    compiler: str = "inductor",
    *,
    num_fwd_outputs: int,
    static_lifetime_input_indices: list[int] | None = None,
) -> tuple[GraphModule, GraphModule]:
    """Cut a joint graph so that the fewest bytes are kept: backward computes cheap operators a second time.

    What is kept is a minimum cut between the inputs of the call and what backward needs; products, convolutions, random
    numbers and the like are never computed twice. Arguments and results are those of `default_partition`.
    """
    joint = _Joint(joint_module, num_fwd_outputs)
    return joint.cut(_least_bytes(joint))


def draw_graph(traced: GraphModule, fname: str, figname: str = "fx_graph", **kwargs: Any) -> None:
    """Write a picture of a graph to a file, by Graphviz."""
    from flambeau.fx.passes.graph_drawer import FxGraphDrawer

    FxGraphDrawer(traced, figname).get_dot_graph().write_svg(fname if fname.endswith(".svg") else f"{fname}.svg")


class _Joint:
    """A joint graph: which of its nodes are of the call, and which of the derivative."""

    def __init__(self, module: GraphModule, num_fwd_outputs: int) -> None:
        self.module = module
        self.nodes = [each for each in module.graph.nodes if each.op != "output"]
        results = next(each for each in module.graph.nodes if each.op == "output").args[0]
        self.outputs, self.gradients = list(results[:num_fwd_outputs]), list(results[num_fwd_outputs:])
        self.tangents = [each for each in self.nodes if each.op == "placeholder" and each.name.startswith("tangents")]
        self.primals = [each for each in self.nodes if each.op == "placeholder" and each not in self.tangents]
        self.of_backward = _closure(self.tangents, lambda node: node.users)

    def border(self) -> list[Node]:
        """What backward reads of the call, in its order."""
        needed = _closure(_nodes_in(self.gradients), lambda node: node.all_input_nodes)
        read = {each for node in needed & self.of_backward for each in node.all_input_nodes}
        read |= set(_nodes_in(self.gradients))
        return [each for each in self.nodes if each in read and each not in self.of_backward]

    def cut(self, kept: Sequence[Node]) -> tuple[GraphModule, GraphModule]:
        """The two graphs, where `kept` is what one gives to the other."""
        forward = self._part(self.primals, [*self.outputs, *kept], is_forward=True)
        return forward, self._part([*kept, *self.tangents], self.gradients, is_forward=False)

    def _part(self, inputs: Sequence[Node], outputs: Sequence[Any], *, is_forward: bool) -> GraphModule:
        graph, copies = Graph(), dict[Node, Node]()
        for each in inputs:
            copies[each] = graph.placeholder(each.name)
            copies[each].meta.update(each.meta)
        roots = _nodes_in(outputs)
        if is_forward:
            roots += [each for each in self.nodes if each not in self.of_backward and _changes_something(each)]
        needed = _closure(roots, lambda node: () if node in copies else node.all_input_nodes)
        for each in self.nodes:
            if each in needed and each not in copies:
                copies[each] = graph.node_copy(each, copies.__getitem__)
        graph.output(tuple([copies[each] if isinstance(each, Node) else each for each in outputs]))
        return GraphModule(self.module, graph)


def _least_bytes(joint: _Joint) -> list[Node]:
    """The nodes of a minimum cut between the inputs of a call and what backward reads."""
    border = joint.border()
    needed = _closure(border, lambda node: node.all_input_nodes)
    flow = _Flow()
    for each in joint.nodes:
        if each not in needed:
            continue
        flow.add((each, "in"), (each, "out"), _bytes_of(each))
        if each.op == "placeholder" or _is_costly(each):
            flow.add("source", (each, "in"), math.inf)
        for user in each.users:
            if user in needed:
                flow.add((each, "out"), (user, "in"), math.inf)
    for each in border:
        flow.add((each, "out"), "sink", math.inf)
    reached = flow.reached_after_filling()
    return [each for each in joint.nodes if (each, "in") in reached and (each, "out") not in reached]


class _Flow:
    """A network of capacities, through which as much flows as can."""

    def __init__(self) -> None:
        self.left: dict[Any, dict[Any, float]] = {"source": {}, "sink": {}}

    def add(self, start: Any, end: Any, capacity: float) -> None:
        """Connect two places by an edge with a capacity."""
        self.left.setdefault(start, {})[end] = self.left.get(start, {}).get(end, 0.0) + capacity
        self.left.setdefault(end, {}).setdefault(start, 0.0)

    def reached_after_filling(self) -> set[Any]:
        """What can be reached from the source once nothing more flows: one side of a minimum cut."""
        while True:
            came_from = self._shortest_ways()
            if "sink" not in came_from:
                return set(came_from)
            way = [("sink")]
            while way[-1] != "source":
                way.append(came_from[way[-1]])
            steps = [(end, start) for start, end in itertools.pairwise(way)]
            amount = min([self.left[start][end] for start, end in steps])
            for start, end in steps:
                self.left[start][end] -= amount
                self.left[end][start] += amount

    def _shortest_ways(self) -> dict[Any, Any]:
        came_from: dict[Any, Any] = {"source": None}
        waiting = deque(["source"])
        while waiting and "sink" not in came_from:
            place = waiting.popleft()
            for following, capacity in self.left[place].items():
                if capacity > 0 and following not in came_from:
                    came_from[following] = place
                    waiting.append(following)
        return came_from


def _closure(roots: Iterable[Node], neighbours: Any) -> set[Node]:
    """The nodes that can be reached from some."""
    found, waiting = set(roots), list(roots)
    while waiting:
        for each in neighbours(waiting.pop()):
            if each not in found:
                found.add(each)
                waiting.append(each)
    return found


def _nodes_in(values: Collection[Any]) -> list[Node]:
    return [each for each in values if isinstance(each, Node)]


def _changes_something(node: Node) -> bool:
    return node.op != "placeholder" and node.is_impure(impure_random=False)


def _is_costly(node: Node) -> bool:
    if node.op != "call_function":
        return True
    name = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
    return name in _COSTLY or name.startswith(("rand", "bernoulli", "normal")) or _changes_something(node)


def _bytes_of(node: Node) -> float:
    """How much memory it takes to keep a result; what is no tensor costs nothing to compute again."""
    value = node.meta.get("val")
    size = getattr(value, "nbytes", None)
    return math.inf if size is None else float(size) + 1.0
