"""Whether a backward pass may ask for derivatives of what is computed next."""

from __future__ import annotations

from ..._core.arrays.lazy_signs import unwrapped
from ..._core.modes import THREAD
from ..._core.tensor import Tensor


def needs_gradient(*tensors: Tensor | None) -> bool:
    """Whether autograd records an op of `tensors` now.

    A wrapper does not say so itself: the graph is that of the tensor in it.
    """
    return THREAD.modes.grad and any(each is not None and unwrapped(each).requires_grad for each in tensors)
