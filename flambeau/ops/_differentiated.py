"""Derivatives that the engine finds, for operators that are derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core.tensor import Tensor
from ..autograd import grad as derive
from ..autograd.grad_mode import enable_grad


def gradients_of(body: Callable[..., Any], args: Sequence[Any], asked: Sequence[int], grad: Any) -> dict[int, Any]:
    """The gradients of the first result by the arguments at the positions `asked`."""
    if not asked:
        return {}
    with enable_grad():
        leaves = list(args)
        for number in asked:
            leaves[number] = args[number].detach().requires_grad_()
        result = body(*leaves)
        first = result if isinstance(result, Tensor) else result[0]
        found = derive(first, [leaves[number] for number in asked], grad, allow_unused=True)
    return dict(zip(asked, found, strict=True))
