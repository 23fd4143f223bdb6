"""`vmap` under the name that it had before `torch.func`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.process.caller import warn_user
from flambeau.func import vmap as _vmap_of_func

__all__ = ["vmap"]


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """`torch.vmap`; use that."""
    warn_user("Please use torch.vmap instead of torch._vmap_internals.vmap.", FutureWarning)
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """`torch.vmap` without a word; with `allow_none_pass_through`, results may be None."""
    if not allow_none_pass_through:
        return _vmap_of_func(func, in_dims, out_dims)

    def run(*args: Any) -> Any:
        places: list[Any] = []

        def without_none(*examples: Any) -> Any:
            results = func(*examples)
            places.extend(each is None for each in results)
            return tuple(each for each in results if each is not None)

        found = iter(_vmap_of_func(without_none, in_dims, out_dims)(*args))
        return tuple(None if missing else next(found) for missing in places)

    return run
