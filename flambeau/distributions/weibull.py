"""The Weibull distribution."""

from __future__ import annotations

import flambeau
from flambeau import Tensor

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Life times whose risk of ending grows (`concentration` > 1) or falls with age.

    Args:
        scale (Tensor or float): the size of the life times.
        concentration (Tensor or float): above 1 the risk grows with age, below 1 it falls.

    Example:
        >>> torch.distributions.Weibull(torch.tensor([2.0]), torch.tensor([1.0])).mean
        tensor([2.])
    """

    arg_constraints = constraints.by_name(scale=constraints.positive, concentration=constraints.positive)
    support = constraints.positive
    _batched = ("concentration_reciprocal",)

    def __init__(self, scale: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        super().__init__(
            Exponential(flambeau.ones_like(self.scale), validate_args=validate_args),
            [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(0, self.scale)],
            validate_args=validate_args,
        )

    def _moment(self, n: int) -> Tensor:
        """The expected value of (x / scale) ** n."""
        return (1 + n * self.concentration_reciprocal).lgamma().exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration_reciprocal

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (self._moment(2) - self._moment(1).pow(2))

    def entropy(self) -> Tensor:
        reciprocal = self.concentration_reciprocal
        return euler_constant * (1 - reciprocal) + (self.scale * reciprocal).log() + 1
