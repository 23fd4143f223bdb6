"""The gamma distribution."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau
from flambeau import Size, Tensor

from . import constraints
from ._functions import gammainc
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The gamma distribution: waiting times for `concentration` events that happen at rate `rate`.

    Args:
        concentration (Tensor or float): how many events to wait for; any positive number.
        rate (Tensor or float): how many events happen in a unit of time.

    Example:
        >>> d = torch.distributions.Gamma(torch.tensor([2.0]), torch.tensor([4.0]))
        >>> d.mean, d.variance
        (tensor([0.5000]), tensor([0.1250]))
    """

    arg_constraints = constraints.by_name(concentration=constraints.positive, rate=constraints.positive)
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = flambeau._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        # The density may be infinite at zero. Outside the graph, so that the gradient stays that of the sample.
        value.detach().clamp_(min=flambeau.finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = flambeau.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check_sample(value)
        return (
            flambeau.xlogy(self.concentration, self.rate)
            + flambeau.xlogy(self.concentration - 1, value)
            - self.rate * value
            - flambeau.lgamma(self.concentration)
        )

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        alpha = self.concentration
        return alpha - self.rate.log() + flambeau.lgamma(alpha) + (1 - alpha) * flambeau.digamma(alpha)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return flambeau.lgamma(x + 1) - (x + 1) * (-y).log()
