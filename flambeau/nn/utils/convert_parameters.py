"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._core.tensor import Tensor
from ..._ops.shape.join import cat

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of `parameters`, one after the other, in one vector.

    >>> flambeau.nn.utils.parameters_to_vector([flambeau.ones(2), flambeau.zeros(1, 2)])
    tensor([1., 1., 0., 0.])

    Args:
        parameters (iterable of Tensors): the tensors, in the order in which they are joined.

    Returns:
        Tensor: a vector with all elements.
    """
    return cat([each.view(-1) for each in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give `parameters` new content: consecutive windows of `vec`, whose memory they share from then on.

    Args:
        vec (Tensor): the vector, with as many elements as all parameters together.
        parameters (iterable of Tensors): the tensors, in the order in which they take windows of the vector.

    Example:
        >>> weights = [torch.zeros(2), torch.zeros(1, 1)]
        >>> torch.nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), weights)
        >>> weights
        [tensor([1., 2.]), tensor([[3.]])]
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    each: Any
    for each in parameters:
        end = start + each.numel()
        each.data = vec[start:end].view_as(each).data
        start = end
