"""The inverse gamma distribution."""

from __future__ import annotations

import math

from flambeau import Tensor

from .._core.names.same_as import same_as
from . import constraints
from ._functions import where
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """Numbers whose reciprocal has the gamma distribution.

    Args:
        concentration (Tensor or float): the shape parameter.
        rate (Tensor or float): how many events happen in a unit of time.

    Example:
        >>> torch.distributions.InverseGamma(torch.tensor([3.0]), torch.tensor([4.0])).mean
        tensor([2.])
    """

    arg_constraints = constraints.by_name(concentration=constraints.positive, rate=constraints.positive)
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    concentration: Tensor = same_as("base_dist.concentration", "The shape parameter, often called alpha.")
    rate: Tensor = same_as("base_dist.rate", "The rate of the reciprocal, often called beta.")

    @property
    def mean(self) -> Tensor:
        mean = self.rate / (self.concentration - 1)
        return where(self.concentration > 1, mean, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        alpha = self.concentration
        variance = self.rate.square() / ((alpha - 1).square() * (alpha - 2))
        return where(alpha > 2, variance, math.inf)

    def entropy(self) -> Tensor:
        alpha = self.concentration
        return alpha + self.rate.log() + alpha.lgamma() - (1 + alpha) * alpha.digamma()
