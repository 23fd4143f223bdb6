"""The multinomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Size, Tensor

from . import constraints
from ._of_categorical import OfCategorical
from .binomial import Binomial
from .categorical import Categorical
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(OfCategorical):
    """How often each of K outcomes happens in `total_count` draws with the given `probs`.

    Args:
        total_count (int): the number of draws. Default: `1`.
        probs (Tensor, optional): the probabilities of the outcomes, (..., K); give these or `logits`.
        logits (Tensor, optional): the log-odds or unnormalised log-probabilities; give these or `probs`, not both.

    Example:
        >>> d = torch.distributions.Multinomial(10, torch.tensor([0.5, 0.5]))
        >>> d.mean, d.sample().sum()
        (tensor([5., 5.]), tensor(10.))
    """

    arg_constraints = constraints.by_name(probs=constraints.simplex, logits=constraints.real_vector)
    _batched = ("_categorical",)
    _kept = ("total_count",)
    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        draws = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = draws.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, draws, flambeau.ones_like(draws))
        return counts.type_as(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        # Impossible outcomes that did not happen contribute nothing.
        logits = logits.masked_fill((value == 0) & (logits == -flambeau.inf), 0)
        arrangements = flambeau.lgamma(value.sum(-1) + 1) - flambeau.lgamma(value + 1).sum(-1)
        return arrangements + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        """By the marginal distributions of the counts, which are binomial."""
        n = flambeau.tensor(self.total_count)
        counts = Binomial(total_count=self.total_count, probs=self.probs)
        support = counts.enumerate_support(expand=False)[1:]
        expected = (counts.log_prob(support).exp() * flambeau.lgamma(support + 1)).sum((0, -1))
        return n * self._categorical.entropy() - flambeau.lgamma(n + 1) + expected
