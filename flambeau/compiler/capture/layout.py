"""What ops look at in a tensor beside its elements, as something that can be compared."""

from __future__ import annotations

from typing import Any

from ..._core.tensor import Tensor
from ...autograd.engine import has_leaf_hooks


class Layout:
    """What ops look at in a tensor beside its elements."""

    __slots__ = ("_facts",)

    def __init__(self, tensor: Tensor) -> None:
        self._facts = _facts(tensor)

    def __str__(self) -> str:
        shape, _, kind, requires_grad, *_ = self._facts
        return f"<{kind.dtype.name}{list(shape)}{', requires_grad' * requires_grad}>"

    def differs(self, tensor: Tensor) -> bool:
        """Whether a tensor is another one to ops."""
        return _facts(tensor) != self._facts or has_hooks(tensor)

    def differs_but_for_sizes(self, tensor: Tensor) -> bool:
        """Whether a tensor of the same sizes would be another one to ops."""
        found, known = _facts(tensor), self._facts
        return found[2:] != known[2:] or len(found[0]) != len(known[0]) or has_hooks(tensor)

    def is_like(self, other: Layout) -> bool:
        """Whether two tensors are the same to ops but for their sizes."""
        return self._facts[2:] == other._facts[2:] and len(self._facts[0]) == len(other._facts[0])

    def is_same(self, other: Layout) -> bool:
        """Whether two tensors are the same to ops."""
        return self._facts == other._facts


def _facts(tensor: Tensor) -> tuple[Any, ...]:
    array = tensor._array
    return (
        array.shape,
        array.strides,
        tensor._kind,
        tensor.requires_grad,
        tensor._grad_fn is None,
        tensor._view is None,
        tensor._counter is None,
        tensor._extra is not None and has_leaf_hooks(tensor),
    )


def has_hooks(tensor: Tensor) -> bool:
    """Whether something beside ops happens with the gradient of a tensor, or it has tangents.

    What happens when the gradient of a leaf is there is none of it: it happens behind the program.
    """
    extra = tensor._extra
    if extra is None:
        return False
    is_leaf = tensor._grad_fn is None and tensor._view is None
    return bool(extra.tangents) or (not is_leaf and bool(extra.hooks or extra.post_accumulate or extra.retains_grad))


def mark(tensor: Tensor) -> tuple[Any, ...]:
    """What stays the same in a tensor unless somebody gives it another array, another layout or a history."""
    array = tensor._array
    history = id(tensor._grad_fn) if tensor._view is None else None  # a view's is made anew when it is asked for
    return id(array), tensor.requires_grad, history, array.shape, array.strides
