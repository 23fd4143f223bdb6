"""Attributes by dotted names, and modules of the nodes that carry equal tags."""

from __future__ import annotations

import copy
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from .utils.common import HolderModule, lift_subgraph_as_module

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: object, name: str) -> Any:
    """What a dotted name leads to."""
    for each in name.split("."):
        obj = obj[int(each)] if isinstance(obj, list) and each.isdigit() else getattr(obj, each)
    return obj


def setattr_recursive(obj: object, attr: str, value: object) -> None:
    """Set what a dotted name leads to."""
    *path, last = attr.split(".")
    setattr(getattr_recursive(obj, ".".join(path)) if path else obj, last, value)


@dataclass
class Component:
    """A part of a graph that becomes a module."""

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: Any = None


def split_by_tags(
    gm: GraphModule, tags: list[str], return_fqn_mapping: bool = False, return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> Any:  # fmt: skip
    """A module that calls one module for each tag, in the order of the tags; each node has its tag as `node.tag`."""
    parts = {tag: Component(Graph(), at, tag) for at, tag in enumerate(tags)}
    home: dict[Node, Component] = {}
    inner: dict[Node, Node] = {}
    main = Graph()
    outer: dict[Node, Node] = {}
    last: Any = None
    for node in gm.graph.nodes:
        tag: Any = getattr(node, "tag", None)
        if node.op in ("placeholder", "get_attr") and tag is None:
            if node.op == "placeholder":
                outer[node] = main.node_copy(node, outer.__getitem__)
            continue
        if node.op == "output":
            last = node
            continue
        part = parts[tag]
        home[node] = part

        def inside(each: Node, part: Component = part) -> Node:
            if each.op == "get_attr":
                if each not in part.getattr_maps:
                    part.getattr_maps[each] = part.graph.get_attr(str(each.target), type_expr=each.type)
                return part.getattr_maps[each]
            if home.get(each) is part:
                return inner[each]
            if each not in part.orig_inputs:
                made = part.graph.placeholder(each.name, type_expr=each.type)
                made.meta = copy.copy(each.meta)
                part.orig_inputs.append(each)
                part.input_placeholders.append(made)
            return part.input_placeholders[part.orig_inputs.index(each)]

        inner[node] = part.graph.node_copy(node, inside)
    used = _needed(last.args)
    for node, part in home.items():
        if any(home.get(user) is not part for user in node.users) or node in used:
            part.orig_outputs.append(node)
    _call_parts(gm, main, list(parts.values()), inner, outer, return_tuple)
    main.output(map_arg(last.args[0], outer.__getitem__))
    root = HolderModule({each.name: each.gm for each in parts.values()})
    made = GraphModuleCls(root, main)
    if not return_fqn_mapping:
        return made
    names = {f"{each.name}.{name}": name for each in parts.values() for name, _ in each.gm.named_parameters()}
    return made, names


def _needed(args: Any) -> set[Node]:
    found: set[Node] = set()

    def note(node: Node) -> Node:
        found.add(node)
        return node

    map_arg(args, note)
    return found


def _call_parts(
    gm: GraphModule, main: Graph, parts: Sequence[Component], inner: Any, outer: Any, return_tuple: bool
) -> None:
    """Make the modules, and the calls of them in the graph that holds all."""
    for part in parts:
        results = tuple(inner[each] for each in part.orig_outputs)
        single = len(results) == 1 and not return_tuple
        part.graph.output(results[0] if single else results)
        part.gm, _ = lift_subgraph_as_module(gm, part.graph, comp_name=part.name)
        call = main.call_module(part.name, args=tuple(outer[each] for each in part.orig_inputs), kwargs=None)
        if single:
            outer[part.orig_outputs[0]] = call
            continue
        for at, each in enumerate(part.orig_outputs):
            outer[each] = main.call_function(operator.getitem, (call, at))
