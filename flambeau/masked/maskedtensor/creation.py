"""Ways to make masked tensors."""

from __future__ import annotations

from ..._core.tensor import Tensor
from .core import MaskedTensor, _check, _masked

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor of its own, outside of the data's graph."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """The data with a mask; gradients flow back to the data."""
    _check(data, mask)
    return _masked(data, mask)
