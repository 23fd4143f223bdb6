"""The Gumbel distribution."""

from __future__ import annotations

import math

import flambeau
from flambeau import Tensor

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The distribution of the largest of many numbers, with mode `loc`.

    Args:
        loc (Tensor or float): the mode.
        scale (Tensor or float): the width.

    Example:
        >>> torch.distributions.Gumbel(torch.tensor([1.0]), torch.tensor([2.0])).mean
        tensor([2.1544])
    """

    arg_constraints = constraints.by_name(loc=constraints.real, scale=constraints.positive)
    support = constraints.real

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        finfo = flambeau.finfo(self.loc.dtype)
        base = Uniform(
            flambeau.full_like(self.loc, finfo.tiny),
            flambeau.full_like(self.loc, 1 - finfo.eps),
            validate_args=validate_args,
        )
        super().__init__(
            base,
            [
                ExpTransform().inv,
                AffineTransform(0, -flambeau.ones_like(self.scale)),
                ExpTransform().inv,
                AffineTransform(self.loc, -self.scale),
            ],
            validate_args=validate_args,
        )

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
