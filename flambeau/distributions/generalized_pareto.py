"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Size, Tensor

from . import constraints
from ._functions import where
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The excess over a high threshold `loc`: heavy tails for a positive `concentration`, bounded for a negative one.

    At zero it is the exponential distribution.

    Args:
        loc (Tensor or float): the threshold.
        scale (Tensor or float): the size of the excess.
        concentration (Tensor or float): the weight of the tail.

    Example:
        >>> d = torch.distributions.GeneralizedPareto(torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([0.5]))
        >>> d.mean
        tensor([5.])
    """

    arg_constraints = constraints.by_name(
        loc=constraints.real, scale=constraints.positive, concentration=constraints.real
    )
    has_rsample = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def _shape(self) -> tuple[Tensor, Tensor]:
        """Where `concentration` is zero, and `concentration` with ones there, since the formulas divide by it."""
        is_zero = flambeau.isclose(self.concentration, flambeau.zeros_like(self.concentration))
        return is_zero, where(is_zero, 1.0, self.concentration)

    def _z(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(flambeau.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        z = self._z(value)
        is_zero, shape = self._shape()
        return where(is_zero, -z, -(1 + 1 / shape) * (shape * z).log1p()) - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of a sample above `value`."""
        self._check_sample(value)
        z = self._z(value)
        is_zero, shape = self._shape()
        return where(is_zero, -z, -(shape * z).log1p() / shape)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of `cdf`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        is_zero, shape = self._shape()
        tail = (-value).log1p()
        return self.loc + self.scale * where(is_zero, -tail, (-shape * tail).expm1() / shape)

    @property
    def mean(self) -> Tensor:
        mean = self.loc + self.scale / (1 - self.concentration)
        return where(self.concentration < 1, mean, math.nan)

    @property
    def variance(self) -> Tensor:
        variance = self.scale**2 / ((1 - self.concentration) ** 2 * (1 - 2 * self.concentration))
        return where(self.concentration < 0.5, variance, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, where(self.concentration < 0, end, math.inf))
