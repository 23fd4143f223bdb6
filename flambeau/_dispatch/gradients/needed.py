"""Whether a backward pass may ask for derivatives of what is computed next."""

from __future__ import annotations

from typing import Any

from ..._core.modes import THREAD
from ..._core.tensor import Tensor


def needs_gradient(*tensors: Tensor | None) -> bool:
    """Whether autograd records an op of `tensors` now.

    A tensor that stands for many does not say so itself: the graph is that of the values behind it.
    """
    return THREAD.modes.grad and any(each is not None and _underlying(each).requires_grad for each in tensors)


def _underlying(tensor: Any) -> Any:
    while tensor.stands_for_many:
        tensor = tensor.value
    return tensor
