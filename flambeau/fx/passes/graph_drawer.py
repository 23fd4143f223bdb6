"""Pictures of graphs, under the names of `torch.fx.passes.graph_drawer`, by the package pydot."""

from __future__ import annotations

import importlib
from typing import Any

from .._target_names import target_text
from ..graph_module import GraphModule
from ..node import Node

__all__ = ["FxGraphDrawer"]

_COLORS = {"placeholder": "AliceBlue", "get_attr": "LightGrey", "output": "PowderBlue", "call_module": "LemonChiffon1",
           "call_function": "CadetBlue1", "call_method": "Thistle1"}  # fmt: skip


class FxGraphDrawer:
    """The graph of a module as a picture: `FxGraphDrawer(module, "name").get_dot_graph().write_svg("file.svg")`."""

    def __init__(
        self, graph_module: GraphModule, name: str, ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False, skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False, dot_graph_shape: str | None = None, normalize_args: bool = False,
    ) -> None:  # fmt: skip
        try:
            self._pydot: Any = importlib.import_module("pydot")
        except ImportError as error:
            raise RuntimeError(
                "FXGraphDrawer requires the pydot package to be installed. Please install pydot through your favorite "
                "Python package manager."
            ) from error
        self._ignore_getattr = ignore_getattr or ignore_parameters_and_buffers
        self._shape = dot_graph_shape or "record"
        self._dot_graphs = {name: self._drawn(graph_module, name)}
        for path, module in graph_module.named_modules():
            if path and isinstance(module, GraphModule):
                self._dot_graphs[f"{name}_{path}"] = self._drawn(module, f"{name}_{path}")

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """The picture of the module, or of a submodule."""
        return self.get_main_dot_graph() if submod_name is None else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> Any:
        """The picture of the module."""
        return next(iter(self._dot_graphs.values()))

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """The picture of a submodule."""
        return self._dot_graphs[f"{next(iter(self._dot_graphs))}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """All pictures, by name."""
        return self._dot_graphs

    def _drawn(self, module: GraphModule, name: str) -> Any:
        picture = self._pydot.Dot(name, rankdir="TB")
        shown = [node for node in module.graph.nodes if not (self._ignore_getattr and node.op == "get_attr")]
        for node in shown:
            picture.add_node(self._pydot.Node(
                node.name, label=self._label(node), shape=self._shape, style='"filled,rounded"',
                fillcolor=_COLORS[node.op], fontcolor="#000000",
            ))  # fmt: skip
        for node in shown:
            for user in node.users:
                picture.add_edge(self._pydot.Edge(node.name, user.name))
        return picture

    @staticmethod
    def _label(node: Node) -> str:
        meta: Any = node.meta.get("tensor_meta")
        shape = rf"|{{dtype={meta.dtype}\nshape={tuple(meta.shape)}}}" if hasattr(meta, "dtype") else ""
        target = target_text(node.target).replace("<", r"\<").replace(">", r"\>")
        return rf"{{name=%{node.name}|op_code={node.op}\n|target={target}\n|num_users={len(node.users)}{shape}}}"
