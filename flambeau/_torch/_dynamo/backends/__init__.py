"""`torch._dynamo.backends`: compilers to choose from, and what is given to those of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flambeau._core.names.absent import Table
from flambeau.compiler import list_backends

__all__ = ["list_backends"]

__getattr__, __dir__ = Table(__name__).submodules("common debugging registry").parts()


def graph_of(
    function: Callable[..., Any], tensors: Sequence[Any], decompositions: Mapping[Any, Callable[..., Any]] | None = None
) -> Any:
    """What a function does with some tensors, as a graph of operators; the random numbers that it drew are put back."""
    from flambeau.fx.experimental.proxy_tensor import make_fx
    from flambeau.random import get_rng_state, set_rng_state

    state = get_rng_state()
    try:
        return make_fx(function, decompositions)(*tensors)
    finally:
        set_rng_state(state)


def compiler_options() -> dict[str, Any]:
    """The options of `compile`, and what they usually are."""
    from flambeau._torch._inductor import config

    return {name: getattr(config, name) for name in dir(config) if not name.startswith("_")}
