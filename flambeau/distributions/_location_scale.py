"""What distributions with a centre and a width share."""

from __future__ import annotations

from flambeau import Tensor

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all


class LocationScale(Distribution):
    """A symmetric distribution of real numbers around `loc`, where its density is largest."""

    arg_constraints = constraints.by_name(loc=constraints.real, scale=constraints.positive)
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return self.loc
