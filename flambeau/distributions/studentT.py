"""Student's t-distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import flambeau
from flambeau import Size, Tensor

from . import constraints
from ._functions import where
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t-distribution with `df` degrees of freedom, around `loc`.

    Args:
        df (Tensor or float): the degrees of freedom.
        loc (Tensor or float): the centre. Default: `0.0`.
        scale (Tensor or float): the width. Default: `1.0`.

    Example:
        >>> torch.distributions.StudentT(torch.tensor([4.0])).variance
        tensor([2.])
    """

    arg_constraints = constraints.by_name(df=constraints.positive, loc=constraints.real, scale=constraints.positive)
    support = constraints.real
    has_rsample = True
    _batched = ("_chi2",)

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        variance = self.scale.pow(2) * self.df / (self.df - 2)
        beyond = where(self.df > 1, math.inf, math.nan).to(variance)
        return where(finite, variance, beyond)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        normal = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        chi2 = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * normal * flambeau.rsqrt(chi2 / self.df)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + flambeau.lgamma(0.5 * self.df)
            - flambeau.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * (y**2.0 / self.df).log1p() - normalizer

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = flambeau.lgamma(half) + math.lgamma(0.5) - flambeau.lgamma(more)
        return self.scale.log() + more * (more.digamma() - half.digamma()) + 0.5 * self.df.log() + log_beta
