"""The normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import flambeau
from flambeau import Size, Tensor

from .._core.names.same_as import same_as
from ._location_scale import LocationScale
from .exp_family import ExponentialFamily
from .utils import _standard_normal

__all__ = ["Normal"]


class Normal(LocationScale, ExponentialFamily):
    """The normal (Gaussian) distribution with mean `loc` and standard deviation `scale`.

    >>> Normal(0.0, 1.0).log_prob(flambeau.tensor(0.0))
    tensor(-0.9189)

    Args:
        loc (Tensor or float): the mean.
        scale (Tensor or float): the standard deviation.
    """

    _mean_carrier_measure = 0

    mean: Tensor = same_as("loc")
    stddev: Tensor = same_as("scale")

    @property
    def variance(self) -> Tensor:
        return self.scale**2

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with flambeau.no_grad():
            return flambeau.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + _standard_normal(shape, self.loc.dtype, self.loc.device) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return -((value - self.loc) ** 2) / (2 * self.variance) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return 0.5 * (1 + flambeau.erf((value - self.loc) / self.scale / math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * flambeau.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.variance, -0.5 / self.variance

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return -0.25 * x**2 / y + 0.5 * (-math.pi / y).log()
