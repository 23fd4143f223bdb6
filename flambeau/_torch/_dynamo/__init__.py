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
    set_stance,
    substitute_in_graph,
)
from flambeau.compiler._entry import compile
from flambeau.compiler._marks import error_on_graph_break, forbid_in_graph, mark_dynamic, maybe_mark_dynamic

from .eval_frame import OptimizedModule

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph",
    "error_on_graph_break", "forbid_in_graph", "graph_break", "is_compiling", "list_backends", "mark_dynamic",
    "mark_static", "mark_static_address", "maybe_mark_dynamic", "nonstrict_trace", "optimize", "optimize_assert",
    "patch_dynamo_config", "reset", "run", "set_stance", "skip_frame", "step_unsupported", "substitute_in_graph",
]  # fmt: skip

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("backends config eval_frame exc external_utils testing utils _trace_wrapped_higher_order_op")
    .elsewhere("explain", "_dynamo._explain")
    .elsewhere("lookup_backend register_backend", "_dynamo.backends.registry")
    .absent(
        "this part of PyTorch's compiler is not built",
        functions="export",
        classes="OptimizeContext",
    )
    .parts()
)


def disallow_in_graph(fn: Any) -> Any:
    """Mark a function as one that compiled code leaves to Python: where it is called is a graph break."""
    return [disable(each) for each in fn] if isinstance(fn, (list, tuple)) else disable(fn)


@disable
def graph_break(msg: str = "") -> None:
    """End a compiled part here: what comes before and behind are programs of their own."""


@disable
def skip_frame(msg: str = "") -> None:
    """Leave the statement that calls this to Python."""


step_unsupported = skip_frame


def nonstrict_trace(traceable_fn: Any) -> Any:
    """Mark a function whose ops are compiled, and whose Python is not looked at; tensors it captures are constants."""
    if not callable(traceable_fn):
        raise AssertionError("nonstrict_trace expects a callable")
    return allow_in_graph(traceable_fn)


def optimize_assert(backend: Any = "inductor", **options: Any) -> Callable[[Any], Any]:
    """The older form of `torch.compile(fullgraph=True)`."""
    return optimize(backend, fullgraph=True, **options)


def patch_dynamo_config(arg1: Any = None, arg2: Any = None, **kwargs: Any) -> Any:
    """Settings of `torch._dynamo.config` inside a block or a decorated function."""
    from . import config

    return config.patch(arg1, arg2, **kwargs)


mark_unbacked = maybe_mark_dynamic


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
