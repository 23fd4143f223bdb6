"""The Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

from flambeau import Tensor

from . import constraints
from ._functions import where
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """Numbers above `scale` whose tail falls as x ** -alpha.

    Args:
        scale (Tensor or float): the smallest number.
        alpha (Tensor or float): how fast the tail falls.

    Example:
        >>> torch.distributions.Pareto(torch.tensor([1.0]), torch.tensor([3.0])).mean
        tensor([1.5000])
    """

    arg_constraints = constraints.by_name(alpha=constraints.positive, scale=constraints.positive)

    def __init__(self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(
            Exponential(self.alpha, validate_args=validate_args),
            [ExpTransform(), AffineTransform(0, self.scale)],
            validate_args=validate_args,
        )

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        finite = self.alpha > 1
        alpha = where(finite, self.alpha, 2.0)
        return where(finite, alpha * self.scale / (alpha - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        finite = self.alpha > 2
        alpha = where(finite, self.alpha, 3.0)
        return where(finite, self.scale.pow(2) * alpha / ((alpha - 1).pow(2) * (alpha - 2)), math.inf)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
