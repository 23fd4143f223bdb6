"""The von Mises distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import flambeau
from flambeau import Size, Tensor

from .._core.names.same_as import same_as
from . import constraints
from ._functions import i0e, i1e, where
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


class VonMises(Distribution):
    """The circular counterpart of the normal distribution: angles in radians around `loc`, between -pi and pi.

    Args:
        loc (Tensor or float): the mean angle.
        concentration (Tensor or float): how close angles are to `loc`.

    Example:
        >>> torch.distributions.VonMises(torch.tensor([1.0]), torch.tensor([4.0])).mean
        tensor([1.])
    """

    arg_constraints = constraints.by_name(loc=constraints.real, concentration=constraints.positive)
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        kappa = self.concentration
        # i0e(x) = exp(-x) * i0(x): its logarithm does not overflow.
        normalizer = math.log(2 * math.pi) + i0e(kappa).log() + kappa
        return kappa * flambeau.cos(value - self.loc) - normalizer

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The parameter of the wrapped Cauchy distribution that proposes samples, in double precision."""
        kappa = self.concentration.double()
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        # For small concentrations rho cancels: there, the first terms of the series.
        return where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """By rejection: D. J. Best and N. I. Fisher, "Efficient simulation of the von Mises distribution", 1979."""
        shape = self._extended_shape(sample_shape)
        with flambeau.no_grad():
            loc, kappa, r = self.loc.double(), self.concentration.double(), self._proposal_r
            x = flambeau.empty(shape, dtype=loc.dtype, device=loc.device)
            done = flambeau.zeros(shape, dtype=flambeau.bool, device=loc.device)
            while not done.all():
                u1, u2, u3 = flambeau.rand((3, *shape), dtype=loc.dtype, device=loc.device).unbind()
                z = flambeau.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                x = where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    mean: Tensor = same_as("loc")
    mode: Tensor = same_as("loc")

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance, 1 - I1 / I0."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)
