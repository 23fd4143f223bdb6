"""The logistic-normal distribution."""

from __future__ import annotations

from flambeau import Tensor

from .._core.names.same_as import same_as
from . import constraints
from .independent import Independent
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Vectors of probabilities that are the stick-breaking transform of normal vectors.

    Args:
        loc (Tensor or float): the mean of the normal vectors.
        scale (Tensor or float): the standard deviation of the normal vectors.

    Example:
        >>> torch.distributions.LogisticNormal(torch.zeros(2), torch.ones(2)).sample().shape
        torch.Size([3])
    """

    arg_constraints = constraints.by_name(loc=constraints.real, scale=constraints.positive)
    support = constraints.simplex
    has_rsample = True
    base_dist: Independent

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def _normal(self) -> Normal:
        normal = self.base_dist.base_dist
        assert isinstance(normal, Normal)
        return normal

    loc: Tensor = same_as("_normal.loc", "The mean of the normal vectors.")
    scale: Tensor = same_as("_normal.scale", "The standard deviation of the normal vectors.")
