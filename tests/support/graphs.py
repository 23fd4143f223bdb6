"""What tests read from graphs."""

from __future__ import annotations

from typing import Any


def node_names(node: Any) -> Any:
    """The name of a node with those of the nodes that follow, down to the leaves."""
    return None if node is None else (node.name(), [node_names(following) for following, _ in node.next_functions])
