"""The geometric distribution."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau
from flambeau import Size, Tensor

from . import constraints
from ._functions import binary_cross_entropy, where
from ._probs import _ProbsOrLogits
from .distribution import Distribution  # noqa: F401  (programs import it from here)
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(_ProbsOrLogits):
    """The number of failures before a first success, which has probability `probs` in each trial.

    Args:
        probs (Tensor or float, optional): the probability of success; give it or `logits`.
        logits (Tensor or float, optional): the log-odds of success; give them or `probs`.

    Example:
        >>> torch.distributions.Geometric(torch.tensor([0.25])).mean
        tensor([3.])
    """

    support = constraints.nonnegative_integer

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._store(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None:
            positive = self.probs > 0
            if not positive.all():
                raise ValueError(
                    f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of "
                    f"distribution {self!r} to be positive but found invalid values:\n{self.probs[~positive]}"
                )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return flambeau.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with flambeau.no_grad():
            u = self.probs.new_empty(shape).uniform_(flambeau.finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        value, probs = broadcast_all(value, self.probs)
        # A certain success leaves no failures: 0 * log(1 - 1) is to be zero.
        failure = where((probs == 1) & (value == 0), 0.0, probs)
        return value * (-failure).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy(self.logits, self.probs) / self.probs
