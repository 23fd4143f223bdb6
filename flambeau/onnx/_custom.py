"""Converters of the user's own: by the names of operators, or by functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._dispatch.op import OPS
from ._converters import Result
from ._graph import Graph, Value

SYMBOLIC: dict[tuple[str, int], Callable[..., Any]] = {}
"""The rules of `register_custom_op_symbolic`, by name and opset."""


class GraphContext:
    """What a rule of the older style is given: `g.op("domain::Operator", x, alpha_f=0.5)`."""

    def __init__(self, graph: Graph, opset: int) -> None:
        self._graph = graph
        self.opset = opset

    def op(self, name: str, *operands: Any, outputs: int = 1, **attributes: Any) -> Any:
        """A node; the last letter of an attribute's name says its type, as in PyTorch."""
        domain, _, kind = name.rpartition("::")
        if domain and domain != "onnx":
            self._graph.domains.setdefault(domain, 1)
        plain = {key[:-2] if key[-2:] in ("_i", "_f", "_s", "_t") else key: value for key, value in attributes.items()}
        made = self._graph.ops(kind, outputs, *operands, domain="" if domain == "onnx" else domain, **plain)
        return made[0] if outputs == 1 else tuple(made)


def converters_of(table: Mapping[Callable[..., Any], Callable[..., Any]] | None, opset: int) -> dict[str, Any]:
    """The user's converters by the names of ops."""
    found: dict[str, Any] = {}
    best: dict[str, int] = {}
    for (name, since), rule in SYMBOLIC.items():
        plain = name.rpartition("::")[2]
        if since <= opset and since >= best.get(plain, 0):
            best[plain] = since
            found.update(dict.fromkeys(_ops_called(name), _of_rule(rule, opset)))
    for target, rule in (table or {}).items():
        found.update(dict.fromkeys(_ops_called(_name_of(target)), _of_rule(rule, opset)))
    return found


def _name_of(target: Any) -> str:
    name = getattr(target, "__name__", None) or str(target)
    return str(getattr(target, "_qualified_op_name", name)).replace(".", "::", 0)


def _ops_called(name: str) -> list[str]:
    """The ops that an operator's name stands for: its own, and the forms that it is run by."""
    plain = name.rpartition("::")[2].split(".")[0]
    forms = (plain, *(f"{plain}_{end}" for end in ("number", "tensor", "all", "dim", "scaled", "layer")))
    own = [each for each in (name, name.replace("::", "."), *forms) if each in OPS]
    return own or [name]


def _of_rule(rule: Callable[..., Any], opset: int) -> Callable[..., Any]:
    def convert(graph: Graph, call: Result, *args: Any) -> Any:
        made = rule(GraphContext(graph, opset), *args)
        if isinstance(made, Value):
            made.dtype = call.dtype
        return made

    return convert
