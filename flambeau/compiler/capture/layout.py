"""What ops look at in a tensor beside its elements, as something that can be compared."""

from __future__ import annotations

from typing import Any

from ..._core.tensor import Tensor
from ...autograd.engine import has_leaf_hooks


class Layout:
    """What ops look at in a tensor beside its elements."""

    __slots__ = ("_facts", "_kind", "_ndim")

    def __init__(self, tensor: Tensor) -> None:
        self._facts = facts = _facts(tensor)
        self._ndim = len(facts[0])
        self._kind = facts[2] if facts[3:] == _PLAIN else None
        """The kind of a tensor without a history, of which nothing else is looked at."""

    def __str__(self) -> str:
        shape, _, kind, requires_grad, *_ = self._facts
        return f"<{kind.dtype.name}{list(shape)}{', requires_grad' * requires_grad}>"

    def differs(self, tensor: Tensor) -> bool:
        """Whether a tensor is another one to ops."""
        if tensor._kind is self._kind and _is_plain(tensor):
            array = tensor._array
            return bool(array.shape != self._facts[0] or array.strides != self._facts[1])
        return _facts(tensor) != self._facts or has_hooks(tensor)

    def differs_but_for_sizes(self, tensor: Tensor) -> bool:
        """Whether a tensor of the same sizes would be another one to ops."""
        if tensor._kind is self._kind and _is_plain(tensor):
            return bool(tensor._array.ndim != self._ndim)
        found, known = _facts(tensor), self._facts
        return found[2:] != known[2:] or len(found[0]) != len(known[0]) or has_hooks(tensor)

    def is_like(self, other: Layout) -> bool:
        """Whether two tensors are the same to ops but for their sizes."""
        return self._facts[2:] == other._facts[2:] and len(self._facts[0]) == len(other._facts[0])

    def is_same(self, other: Layout) -> bool:
        """Whether two tensors are the same to ops."""
        return self._facts == other._facts


def _is_plain(tensor: Tensor) -> bool:
    """Whether the facts behind the kind of a tensor are those of one without a history: most arguments are such."""
    if tensor._extra is not None or tensor._view is not None or tensor._grad_fn is not None:
        return False
    return tensor._requires_grad is False and tensor._counter is not None


_PLAIN = (False, True, True, False, False)
"""The facts behind the kind of a tensor that was made without a history."""


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
