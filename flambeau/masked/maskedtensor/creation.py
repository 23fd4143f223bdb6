"""Ways to make masked tensors."""

from __future__ import annotations

from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from .core import MaskedTensor, _check, _masked

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor of its own, outside of the data's graph.

    Args:
        data (Tensor): the elements.
        mask (Tensor): True where an element counts.
        requires_grad (bool): whether autograd records operations on it. Default: `False`.

    Returns:
        MaskedTensor: the masked tensor.

    Example:
        >>> from flambeau.masked import masked_tensor
        >>> masked_tensor(torch.tensor([1.0, 2.0]), torch.tensor([True, False]))
        MaskedTensor(
          [  1.0000,       --]
        )
    """
    return MaskedTensor(data, mask, requires_grad)


@documented_like(masked_tensor)
def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """The data with a mask; gradients flow back to the data.

    Example:
        >>> from flambeau.masked import as_masked_tensor
        >>> as_masked_tensor(torch.tensor([1.0, 2.0]), torch.tensor([True, False])).sum()
        MaskedTensor(  1.0000, True)
    """
    _check(data, mask)
    return _masked(data, mask)
