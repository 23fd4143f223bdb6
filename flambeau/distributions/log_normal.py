"""The log-normal distribution."""

from __future__ import annotations

from flambeau import Tensor

from .._core.names.same_as import same_as
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """Numbers whose logarithm is normal with mean `loc` and standard deviation `scale`.

    Args:
        loc (Tensor or float): the mean of the logarithm.
        scale (Tensor or float): the standard deviation of the logarithm.

    Example:
        >>> torch.distributions.LogNormal(torch.tensor([0.0]), torch.tensor([1.0])).mean
        tensor([1.6487])
    """

    arg_constraints = constraints.by_name(loc=constraints.real, scale=constraints.positive)
    support = constraints.positive
    has_rsample = True
    base_dist: Normal

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    loc: Tensor = same_as("base_dist.loc", "The mean of the logarithm.")
    scale: Tensor = same_as("base_dist.scale", "The standard deviation of the logarithm.")

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
