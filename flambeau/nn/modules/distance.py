"""Distances and similarities of pairs of vectors."""

from __future__ import annotations

from typing import ClassVar

from ..._core.tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The p-norm of the differences along the last dimension."""

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
        result: Tensor = F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
        return result


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along `dim`."""

    __constants__: ClassVar[list[str]] = ["dim", "eps"]

    dim: int
    eps: float

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        result: Tensor = F.cosine_similarity(x1, x2, self.dim, self.eps)
        return result
