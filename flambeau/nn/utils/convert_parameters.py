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
    """
    return cat([each.view(-1) for each in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give `parameters` new content: consecutive windows of `vec`, whose memory they share from then on."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    each: Any
    for each in parameters:
        end = start + each.numel()
        each.data = vec[start:end].view_as(each).data
        start = end
