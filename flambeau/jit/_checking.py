"""`check_trace`: a trace is run beside the Python that it was made from."""

from __future__ import annotations

from typing import Any

from .._core.process.caller import warn_user
from .._core.tensor import Tensor
from ._errors import TracerWarning


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [each for part in value for each in _tensors(part)] if isinstance(value, (list, tuple)) else []


def check(function: Any, traced: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tolerance: float) -> None:
    """Warn where a trace gives something else than the function, from the same random numbers."""
    import flambeau

    results = []
    with flambeau.no_grad():
        for each in (function, traced):
            with flambeau.random.fork_rng():
                results.append(_tensors(each(*_copied(args), **_copied(kwargs))))
    for number, (expected, found) in enumerate(zip(*results, strict=True), 1):
        if expected.shape != found.shape or not flambeau.allclose(
            expected.to(found.dtype), found, rtol=tolerance, atol=tolerance, equal_nan=True
        ):
            warn_user(
                f"Output nr {number}. of the traced function does not match the corresponding output of the Python "
                "function. What depends on values, or on what changes from call to call, is not in a trace.",
                TracerWarning,
            )


def _copied(value: Any) -> Any:
    """Example inputs of which each run has its own."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        return type(value)([_copied(each) for each in value])
    return {key: _copied(each) for key, each in value.items()} if isinstance(value, dict) else value
