"""The chi-squared distribution."""

from __future__ import annotations

from flambeau import Tensor

from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The distribution of a sum of `df` squared standard normal numbers: Gamma(df / 2, 1 / 2).

    Args:
        df (Tensor or float): the degrees of freedom.

    Example:
        >>> torch.distributions.Chi2(torch.tensor([3.0])).mean
        tensor([3.])
    """

    arg_constraints = constraints.by_name(df=constraints.positive)

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
