"""Dropout: random zeros in training, the identity in evaluation."""

from __future__ import annotations

from typing import ClassVar

from ..._core.tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    __constants__: ClassVar[list[str]] = ["p", "inplace"]

    _function: ClassVar[str]
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = getattr(F, self._function)(input, self.p, self.training, self.inplace)
        return result


class Dropout(_DropoutNd):
    """Zeroes elements with probability `p` and scales the others by 1 / (1 - p)."""

    _function = "dropout"


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of signals."""

    _function = "dropout1d"


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of images."""

    _function = "dropout2d"


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of volumes."""

    _function = "dropout3d"


class _AlphaDropout(_DropoutNd):
    """`inplace` is kept for its place in the signature: the result is always a new tensor."""

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = getattr(F, self._function)(input, self.p, self.training)
        return result


class AlphaDropout(_AlphaDropout):
    """Dropout to SELU's lower limit, which keeps mean and variance."""

    _function = "alpha_dropout"


class FeatureAlphaDropout(_AlphaDropout):
    """Dropout of whole channels to SELU's lower limit, which keeps mean and variance."""

    _function = "feature_alpha_dropout"
