"""The functions of layers under their compiled module's name."""

from __future__ import annotations

from typing import Any

import flambeau
from flambeau._dispatch.public.namespaces import bound_to
from flambeau._dispatch.public.registry import in_namespace
from flambeau._dispatch.public.schemas import operators_of


@bound_to("_C._nn")
def _parse_to(namespace: Any, /, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """What the arguments of a `to` say: device, dtype, non_blocking, memory format."""
    from flambeau.nn.modules._conversions import _parse_to as parse

    dtype, device, (non_blocking,), memory_format = parse(*args, **kwargs)
    return device, dtype, non_blocking, memory_format


def __getattr__(name: str) -> Any:
    if name == "log_sigmoid":
        return flambeau.nn.functional.logsigmoid
    for space in (flambeau.nn.functional, flambeau):
        found = getattr(space, name, None)
        if found is not None:
            return in_namespace(found, "_C._nn")
    if name in operators_of("aten"):
        return getattr(flambeau.ops.aten, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
