"""Distances and similarities of pairs of vectors."""

from __future__ import annotations

from typing import ClassVar

from ..._core.tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The p-norm of the differences between vectors, along the last dimension.

    `output = norm(x1 - x2 + eps, p)`

    Args:
        p (float): the order of the norm. Default: `2.0`.
        eps (float): a number added to the differences. Default: `1e-06`.
        keepdim (bool): whether the last dimension stays, with size 1. Default: `False`.

    Shape:
        x1, x2: (N, D) or (D,)
        output: (N,) or (); with `keepdim` (N, 1) or (1,)

    Example:
        >>> flambeau.nn.PairwiseDistance()(flambeau.zeros(1, 2), flambeau.tensor([[3.0, 4.0]]))
        tensor([5.0000])
    """

    __constants__: ClassVar[list[str]] = ["norm", "eps", "keepdim"]

    norm: float
    eps: float
    keepdim: bool

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors.

    `output = sum(x1 * x2) / (max(norm(x1), eps) * max(norm(x2), eps))`

    Args:
        dim (int): the dimension along which the vectors lie. Default: `1`.
        eps (float): the smallest norm that counts, so that no denominator is zero. Default: `1e-08`.

    Shape:
        x1, x2: shapes that broadcast together
        output: their broadcast shape without `dim`

    Example:
        >>> a, b = flambeau.tensor([[3.0, 4.0]]), flambeau.tensor([[4.0, 3.0]])
        >>> flambeau.nn.CosineSimilarity()(a, b)
        tensor([0.9600])
    """

    __constants__: ClassVar[list[str]] = ["dim", "eps"]

    dim: int
    eps: float

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
