"""Control flow as functions: `cond` and `while_loop`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.tensor import Tensor


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """`true_fn(*operands)` or `false_fn(*operands)`, by the truth of `pred`.

    >>> flambeau.cond(flambeau.tensor(True), lambda x: x + 1, lambda x: x - 1, (flambeau.ones(1),))
    tensor([2.])
    """
    if not callable(true_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"Expect operands to be a tuple of possibly nested dict/list/tuple, but got {operands}.")
    return (true_fn if pred else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> tuple[Any, ...]:
    """Apply `body_fn` to the carried values as long as `cond_fn` of them is true.

    >>> flambeau.while_loop(lambda i: i < 3, lambda i: (i + 1,), (flambeau.tensor(0),))
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
