"""`functionalize`: a function without changes in place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._core.device import strided
from .._core.tensor import Tensor
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten
from ._functional.level import Functionalize, FunctionalTensor, stored


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func` as a function that makes the same results, and the same changes of its arguments, without in-place ops.

    What it runs is seen so by every transform and tracer around it. With `remove="mutations_and_views"` ops that copy
    are in the place of views, too. Tensors that `func` has from elsewhere than its arguments, and sparse ones, are
    used as they are.

    >>> def f(x):
    ...     y = x.clone()
    ...     y[0].add_(1)
    ...     return y
    >>> flambeau.func.functionalize(f)(flambeau.zeros(2))
    tensor([1., 0.])

    Args:
        func (Callable): the function to differentiate.
        remove (str): "mutations", or "mutations_and_views" to have no views either. Default: `"mutations"`.

    Returns:
        a function with the same arguments and results.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced "
            "with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be "
            "replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        level = Functionalize(remove == "mutations_and_views")
        leaves, structure = tree_flatten((args, kwargs))
        given = {id(each): each for each in leaves if isinstance(each, Tensor) and each.layout is strided}
        windows = {key: level.wrapped(each) for key, each in given.items()}
        own_args, own_kwargs = tree_unflatten([windows.get(id(each), each) for each in leaves], structure)
        try:
            with level:
                results = func(*own_args, **own_kwargs)
            _pass_on_changes([(given[key], window) for key, window in windows.items()])
            return tree_map(lambda each: level.front(each) if isinstance(each, Tensor) else each, results)
        finally:
            level.running = False

    return wrapper


def _pass_on_changes(pairs: list[tuple[Tensor, FunctionalTensor]]) -> None:
    """Let the arguments become what the function made of them."""
    for tensor, window in pairs:
        if window.memory.changes:
            tensor.copy_(stored(tensor, window.value))
