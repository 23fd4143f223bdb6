"""From a graph that computes in floats with steps to codes and back to one of codes."""

from __future__ import annotations

from typing import Any

from ....fx.graph_module import GraphModule
from ._lowering import Lowering
from .graph_module import QuantizedGraphModule

__all__ = ["lower_to_fbgemm"]


def lower_to_fbgemm(
    model: GraphModule,
    qconfig_map: dict[str, Any],
    node_name_to_scope: dict[str, tuple[str, type]],
    keep_original_weights: bool = False,
) -> GraphModule:
    """The graph of codes, for the kernels of a server."""
    kept = {name: value.detach() for name, value in model.named_parameters()} if keep_original_weights else {}
    Lowering(model, qconfig_map).run()
    made = QuantizedGraphModule(model, model.graph, set())
    made.meta.update(model.meta)
    made.delete_all_unused_submodules()
    if keep_original_weights:
        made.meta["original_weights"] = kept
    return made
