"""From a graph that computes in floats with steps to codes and back to one of codes."""

from __future__ import annotations

from typing import Any

from ....fx.graph_module import GraphModule
from .lower_to_fbgemm import lower_to_fbgemm

__all__ = ["lower_to_qnnpack"]


def lower_to_qnnpack(
    model: GraphModule, qconfig_map: dict[str, Any], node_name_to_scope: dict[str, tuple[str, type]]
) -> GraphModule:
    """The graph of codes, for the kernels of a phone: they are the same here."""
    return lower_to_fbgemm(model, qconfig_map, node_name_to_scope)
