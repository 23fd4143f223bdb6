"""Types of elements from the types of the sequences that they are taken from."""

from __future__ import annotations

import operator
from typing import Any, get_args, get_origin

from ..graph import Graph

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph: Graph) -> None:
    """Give each node that takes an element the type that the type of its sequence says."""
    for node in graph.nodes:
        if node.target is not operator.getitem:
            continue
        sequence, index = node.args
        kind: Any = getattr(sequence, "type", None)
        if kind is None:
            continue
        inner = get_args(kind)
        if get_origin(kind) is tuple and inner:
            node.type = inner[0] if len(inner) == 2 and inner[1] is Ellipsis else inner[index]
        elif get_origin(kind) is list and inner:
            node.type = inner[0]
        elif isinstance(kind, type) and hasattr(kind, "__annotations__") and hasattr(kind, "_fields"):
            node.type = kind.__annotations__[kind._fields[index]]
