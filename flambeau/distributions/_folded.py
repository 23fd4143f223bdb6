"""Distributions folded at zero."""

from __future__ import annotations

import math

from flambeau import Tensor

from ._functions import where
from .cauchy import Cauchy
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


class _Folded(TransformedDistribution):
    """|x|, where x is distributed symmetrically around zero: each side carries half of the probability."""

    base_dist: Normal | Cauchy

    def __init__(self, base: Normal | Cauchy, validate_args: bool | None = None) -> None:
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of the distribution that is folded."""
        return self.base_dist.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return where(value >= 0, log_prob, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
