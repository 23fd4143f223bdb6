"""Functions of which Python reads elements before an op runs: under `vmap` they run on one example after the other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from .._core.tensor import Tensor
from .op import parameter_names

P = ParamSpec("P")
R = TypeVar("R")


def one_by_one(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Where one of the parameters `names` is an example of many, the decorated function runs on each by itself."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = parameter_names(function)
        positions = [(parameters.index(name), name) for name in names]

        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            for position, name in positions:
                given: Any = args[position] if position < len(args) else kwargs.get(name)
                if isinstance(given, Tensor) and given._is_wrapper:
                    results: R = given._one_by_one(run, args, kwargs)
                    return results
            return function(*args, **kwargs)

        return run

    return decorate
