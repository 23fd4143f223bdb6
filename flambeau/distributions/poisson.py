"""The Poisson distribution."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau
from flambeau import Size, Tensor

from .._core.names.same_as import same_as
from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """The number of events in a unit of time, when they happen independently at `rate`.

    Args:
        rate (Tensor or float): how many events happen in a unit of time.

    Example:
        >>> d = torch.distributions.Poisson(torch.tensor([4.0]))
        >>> d.mean, d.variance
        (tensor([4.]), tensor([4.]))
    """

    arg_constraints = constraints.by_name(rate=constraints.nonnegative)
    support = constraints.nonnegative_integer

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    mean: Tensor = same_as("rate")

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    variance: Tensor = same_as("rate")

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with flambeau.no_grad():
            return flambeau.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return flambeau.xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp()
