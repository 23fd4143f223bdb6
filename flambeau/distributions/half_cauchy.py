"""The half-Cauchy distribution."""

from __future__ import annotations

import math

import flambeau
from flambeau import Tensor

from . import constraints
from ._folded import _Folded
from .cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(_Folded):
    """The absolute value of Cauchy numbers around zero with half-width `scale`.

    Args:
        scale (Tensor or float): the half-width of the Cauchy distribution.

    Example:
        >>> torch.distributions.HalfCauchy(torch.tensor([1.0])).cdf(torch.tensor([1.0]))
        tensor([0.5000])
    """

    arg_constraints = constraints.by_name(scale=constraints.positive)
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return flambeau.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def mode(self) -> Tensor:
        return flambeau.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Tensor:
        value = flambeau.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return super().log_prob(value)
