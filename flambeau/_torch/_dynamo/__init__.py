"""What programs ask of PyTorch's compiler, under the names of `torch._dynamo`, as in eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.names.absent import Table
from flambeau.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
    substitute_in_graph,
)
from flambeau.compiler._entry import compile
from flambeau.compiler._marks import mark_dynamic

from .eval_frame import OptimizedModule

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph", "graph_break",
    "is_compiling", "list_backends", "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic",
    "optimize", "reset", "run", "skip_frame", "substitute_in_graph",
]  # fmt: skip

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("backends config eval_frame exc external_utils testing utils _trace_wrapped_higher_order_op")
    .elsewhere("explain", "_dynamo._explain")
    .elsewhere("lookup_backend register_backend", "_dynamo.backends.registry")
    .absent(
        "this part of PyTorch's compiler is not built",
        functions="export forbid_in_graph",
        classes="OptimizeContext",
    )
    .parts()
)


def disallow_in_graph(fn: Any) -> Any:
    """Mark a function as one that compiled code leaves to Python."""
    return fn


def graph_break(msg: str = "") -> None:
    """End a compiled part here: nothing is compiled."""


def skip_frame(msg: str = "") -> None:
    """Leave the calling function to Python: it is."""


maybe_mark_dynamic = mark_unbacked = mark_dynamic


def mark_static(t: Any, index: Any = None) -> None:
    """Say that a dimension stays what it is."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Say that a tensor stays where it is."""


def optimize(backend: Any = "inductor", **options: Any) -> Callable[[Any], Any]:
    """The older form of `torch.compile`."""
    decorator: Callable[[Any], Any] = compile(backend=backend, **options)
    return decorator


def run(fn: Any = None) -> Any:
    """Run what is compiled and compile nothing more."""
    return fn
