"""The F-distribution of Fisher and Snedecor."""

from __future__ import annotations

import math
from collections.abc import Sequence

import flambeau
from flambeau import Size, Tensor

from . import constraints
from ._functions import where
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared numbers, each divided by its degrees of freedom `df1` and `df2`.

    Args:
        df1 (Tensor or float): the degrees of freedom of the numerator.
        df2 (Tensor or float): the degrees of freedom of the denominator.

    Example:
        >>> torch.distributions.FisherSnedecor(torch.tensor([2.0]), torch.tensor([4.0])).mean
        tensor([2.])
    """

    arg_constraints = constraints.by_name(df1=constraints.positive, df2=constraints.positive)
    support = constraints.positive
    has_rsample = True
    _batched = ("_gamma1", "_gamma2")

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return where(self.df1 > 2, mode, math.nan)

    @property
    def variance(self) -> Tensor:
        df1, df2 = self.df1, self.df2
        variance = 2 * df2.pow(2) * (df1 + df2 - 2) / (df1 * (df2 - 2).pow(2) * (df2 - 4))
        return where(df2 > 4, variance, math.nan)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        tiny = flambeau.finfo(self.df2.dtype).tiny
        x1 = self._gamma1.rsample(sample_shape)
        x2 = self._gamma2.rsample(sample_shape).clamp(min=tiny)
        return (x1 / x2).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        log_beta = half1.lgamma() + half2.lgamma() - (half1 + half2).lgamma()
        shape = half1 * ratio.log() + (half1 - 1) * value.log()
        return shape - (half1 + half2) * (ratio * value).log1p() - log_beta
