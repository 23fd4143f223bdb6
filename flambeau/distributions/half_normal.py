"""The half-normal distribution."""

from __future__ import annotations

import math

import flambeau
from flambeau import Tensor

from . import constraints
from ._folded import _Folded
from .normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(_Folded):
    """The absolute value of normal numbers with mean zero and standard deviation `scale`.

    Args:
        scale (Tensor or float): the standard deviation of the normal distribution.

    Example:
        >>> torch.distributions.HalfNormal(torch.tensor([1.0])).mean
        tensor([0.7979])
    """

    arg_constraints = constraints.by_name(scale=constraints.positive)
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return flambeau.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)
