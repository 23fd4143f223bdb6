"""Graphs on their way from floats to codes; each keeps some attributes of the model that the graph does not use."""

from __future__ import annotations

import copy
from typing import Any

from ....fx.graph import Graph
from ....fx.graph_module import GraphModule
from ....nn.modules.module import Module
from ....ops.quantized import PackedWeight

__all__ = ["FusedGraphModule", "ObservedGraphModule", "ObservedStandaloneGraphModule", "QuantizedGraphModule"]


class FusedGraphModule(GraphModule):
    """A graph whose neighbouring modules were made one."""

    def __init__(self, root: Module | dict[str, Any], graph: Graph, preserved_attr_names: set[str]) -> None:
        self.preserved_attr_names = preserved_attr_names
        kept = {name: getattr(root, name) for name in preserved_attr_names if hasattr(root, name)}
        super().__init__(root, graph)
        for name, value in kept.items():
            setattr(self, name, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        plain = Module()
        plain.__dict__ = copy.deepcopy({key: value for key, value in vars(self).items() if key != "_graph"}, memo)
        return type(self)(plain, copy.deepcopy(self.graph), copy.deepcopy(self.preserved_attr_names))


class ObservedGraphModule(FusedGraphModule):
    """A graph with observers."""


class ObservedStandaloneGraphModule(ObservedGraphModule):
    """A watched graph of a module that is quantized apart from the rest."""


class QuantizedGraphModule(FusedGraphModule):
    """A graph of codes; the packed weights of its functions are a part of its state."""

    def _packed(self) -> dict[str, PackedWeight]:
        return {name: value for name, value in vars(self).items() if isinstance(value, PackedWeight)}

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination.update((prefix + name, value) for name, value in self._packed().items())

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *further: Any) -> None:
        for name in self._packed():
            if prefix + name in state_dict:
                setattr(self, name, state_dict.pop(prefix + name))
        super()._load_from_state_dict(state_dict, prefix, *further)
