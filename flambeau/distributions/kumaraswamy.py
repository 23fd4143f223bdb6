"""The Kumaraswamy distribution."""

from __future__ import annotations

import math

import flambeau
from flambeau import Tensor

from . import constraints
from ._functions import where
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """A distribution over (0, 1), like the beta distribution, with cdf 1 - (1 - x ** a) ** b.

    Args:
        concentration1 (Tensor or float): the exponent of x, `a`.
        concentration0 (Tensor or float): the exponent outside, `b`.

    Example:
        >>> torch.distributions.Kumaraswamy(torch.tensor([1.0]), torch.tensor([1.0])).mean
        tensor([0.5000])
    """

    arg_constraints = constraints.by_name(concentration1=constraints.positive, concentration0=constraints.positive)
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            flambeau.full_like(self.concentration0, 0), flambeau.full_like(self.concentration0, 1), validate_args
        )
        super().__init__(
            base,
            [
                PowerTransform(self.concentration0.reciprocal()),
                AffineTransform(1.0, -1.0),
                PowerTransform(self.concentration1.reciprocal()),
            ],
            validate_args=validate_args,
        )

    def _moment(self, n: int) -> Tensor:
        """The expected value of x ** n: b * B(1 + n / a, b)."""
        a, b = self.concentration1, self.concentration0
        order = 1 + n / a
        return (b.log() + order.lgamma() + b.lgamma() - (order + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1) & (a * b > 1)  # elsewhere the density has no single peak within (0, 1)
        return where(inside, ((a - 1) / (a * b - 1)) ** a.reciprocal(), math.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
