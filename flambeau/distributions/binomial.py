"""The binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Size, Tensor

from . import constraints
from ._functions import logsigmoid
from ._probs import _ProbsOrLogits
from .distribution import Distribution  # noqa: F401  (programs import it from here)

__all__ = ["Binomial"]


class Binomial(_ProbsOrLogits):
    """The number of successes in `total_count` trials, each of probability `probs`.

    Args:
        total_count (Tensor or int): the number of trials. Default: `1`.
        probs (Tensor or float, optional): the probability of success; give it or `logits`.
        logits (Tensor or float, optional): the log-odds of success; give them or `probs`.

    Example:
        >>> d = torch.distributions.Binomial(10, torch.tensor([0.5]))
        >>> d.mean, d.variance
        (tensor([5.]), tensor([2.5000]))
    """

    arg_constraints = constraints.by_name(
        total_count=constraints.nonnegative_integer, probs=constraints.unit_interval, logits=constraints.real
    )
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (total_count,) = self._store(probs, logits, total_count)
        self.total_count = total_count.type_as(self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with flambeau.no_grad():
            return flambeau.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        arrangements = (
            flambeau.lgamma(self.total_count + 1)
            - flambeau.lgamma(value + 1)
            - flambeau.lgamma(self.total_count - value + 1)
        )
        return value * self.logits + self.total_count * logsigmoid(-self.logits) + arrangements

    def _common_total_count(self, method: str) -> int:
        most = int(self.total_count.max())
        if not self.total_count.min() == most:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{method}`.")
        return most

    def entropy(self) -> Tensor:
        self._common_total_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        most = self._common_total_count("enumerate_support")
        values = flambeau.arange(1 + most, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)
