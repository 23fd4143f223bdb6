"""Types written on the nodes of a graph while it is traced."""

from __future__ import annotations

from typing import Any

from .proxy import Proxy

__all__ = ["annotate"]


def annotate(val: Any, type: type) -> Any:
    """Give the node of a proxy a type; any other value as it is."""
    if not isinstance(val, Proxy):
        return val
    if val.node.type:
        raise RuntimeError(f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type}")
    val.node.type = type
    return val
