"""`torch._dynamo.backends.registry`: give a backend a name by which `torch.compile` knows it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from flambeau.compiler import _registry, get_default_backend, list_backends, set_default_backend
from flambeau.compiler._registry import Backend

__all__ = [
    "get_default_backend", "list_backends", "lookup_backend", "register_backend", "register_debug_backend",
    "register_experimental_backend", "set_default_backend",
]  # fmt: skip


def register_backend(
    compiler_fn: Backend | None = None, name: str | None = None, tags: Sequence[str] = ()
) -> Callable[..., Any]:
    """Let `torch.compile(backend=name)` call a function of a graph and example inputs; as a decorator too.

    Args:
        compiler_fn (Callable, optional): the function, which returns what is called in place of the graph.
        name (str, optional): the name; None takes the function's.
        tags (Sequence[str]): what `list_backends` can leave it out by: "debug" or "experimental".

    Returns:
        the function.
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    _registry.register(compiler_fn, name or compiler_fn.__name__, tags)
    return compiler_fn


register_debug_backend = functools.partial(register_backend, tags=("debug",))
register_experimental_backend = functools.partial(register_backend, tags=("experimental",))


def lookup_backend(compiler_fn: str | Backend) -> Backend:
    """The function behind the name of a backend; a function is given back as it is."""
    found = _registry.resolved(compiler_fn)
    if callable(found):
        return found
    return lambda graph, inputs: graph.forward if found == "eager" else _registry_entry(graph, found)


def _registry_entry(graph: Any, name: str) -> Callable[..., Any]:
    from flambeau.compiler import compile

    made: Callable[..., Any] = compile(graph, backend=name)
    return made
