"""The one way in which tracers make modules, under the names of `torch.fx._lazy_graph_module`."""

from __future__ import annotations

from typing import Any

from .graph_module import GraphModule


def _make_graph_module(*args: Any, graph_module_cls: type[GraphModule] | None = None, **kwargs: Any) -> GraphModule:
    """A `GraphModule`, or one of a class of one's own."""
    return (graph_module_cls or GraphModule)(*args, **kwargs)
