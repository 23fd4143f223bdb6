"""Graphs of modules, under the names of `torch.fx`: not built yet. `wrap` and `has_side_effect` mark functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.names.absent import Table

_REASON = "graph capture (fx) is not built yet"
_WRAPPED: set[str] = set()
_SIDE_EFFECTS: set[Callable[..., Any]] = set()

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        _REASON,
        functions="symbolic_trace replace_pattern map_arg",
        classes="Tracer Graph Interpreter Transformer Node Proxy CodeGen",
    )
    .elsewhere("GraphModule", "fx._graph_module")
    .submodules("experimental graph graph_module interpreter node passes proxy _symbolic_trace")
    .parts()
)


def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """Mark a function as one that tracing is not to look into."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    _WRAPPED.add(fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__)
    return fn_or_name


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as one whose call must be kept even where its result is not used."""
    _SIDE_EFFECTS.add(fn)
    return fn
