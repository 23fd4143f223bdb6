"""The negative binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau
from flambeau import Size, Tensor

from . import constraints
from ._functions import logsigmoid
from ._probs import _ProbsOrLogits
from .distribution import Distribution  # noqa: F401  (programs import it from here)
from .gamma import Gamma
from .utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(_ProbsOrLogits):
    """The number of successes, of probability `probs`, before `total_count` failures.

    Args:
        total_count (Tensor or float): the number of failures at which the trials end.
        probs (Tensor or float, optional): the probability of success; give it or `logits`.
        logits (Tensor or float, optional): the log-odds of success; give them or `probs`.

    Example:
        >>> torch.distributions.NegativeBinomial(torch.tensor([3.0]), torch.tensor([0.5])).mean
        tensor([3.])
    """

    arg_constraints = constraints.by_name(
        total_count=constraints.greater_than_eq(0),
        probs=constraints.half_open_interval(0.0, 1.0),
        logits=constraints.real,
    )
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (total_count,) = self._store(probs, logits, total_count)
        self.total_count = total_count.type_as(self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / flambeau.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        """The distribution of the rate: the counts are Poisson ones of random rate."""
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with flambeau.no_grad():
            return flambeau.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        weights = self.total_count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        arrangements = (
            flambeau.lgamma(self.total_count + value) - flambeau.lgamma(1.0 + value) - flambeau.lgamma(self.total_count)
        )
        # No failure to wait for and no success: one arrangement, though lgamma(0) is infinite.
        empty = self.total_count + value == 0.0
        return weights + arrangements.masked_fill(empty, 0.0)
