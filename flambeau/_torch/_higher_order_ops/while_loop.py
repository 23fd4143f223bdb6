"""`while_loop`: a function again and again, as long as another is true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> tuple[Any, ...]:
    """Apply `body_fn` to the carried values as long as `cond_fn` of them is true.

    Args:
        cond_fn: takes the carried values; a bool or a tensor with one element tells whether to go on.
        body_fn: takes the carried values and returns the next ones, as a tuple of the same length.
        carried_inputs (tuple): the first values.

    Returns:
        tuple: the values for which `cond_fn` is false.

    Raises:
        RuntimeError: a function is not callable, or `body_fn` returns something else than such a tuple.

    Example:
        >>> torch.while_loop(lambda i: i < 3, lambda i: (i + 1,), (torch.tensor(0),))
        (tensor(3),)
    """
    if not callable(cond_fn):
        raise RuntimeError("Expect cond_fn to be callable.")
    if not callable(body_fn):
        raise RuntimeError("Expect body_fn to be callable.")
    carried = tuple(carried_inputs)
    while cond_fn(*carried):
        result = body_fn(*carried)
        if not isinstance(result, tuple):
            raise RuntimeError(f"body_fn should return a tuple but got {type(result)}")
        if len(result) != len(carried):
            raise RuntimeError(
                f"body_fn should return the same number of elements as carried_inputs, {len(carried)}, but got "
                f"{len(result)}"
            )
        carried = result
    return carried
