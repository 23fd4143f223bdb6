"""The categorical distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Size, Tensor

from . import constraints
from ._probs import _ProbsOrLogits, check_one_given
from .distribution import Distribution  # noqa: F401  (programs import it from here)

__all__ = ["Categorical"]


class Categorical(_ProbsOrLogits):
    """Whole numbers below K, with probabilities proportional to the K entries of `probs` (or `logits.exp()`).

    >>> Categorical(flambeau.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])

    Args:
        probs (Tensor, optional): the probabilities along the last dimension, (..., K); they are divided by their sum.
            Give these or `logits`.
        logits (Tensor, optional): the unnormalised log-probabilities along the last dimension, (..., K); give these or
            `probs`.
    """

    arg_constraints = constraints.by_name(probs=constraints.simplex, logits=constraints.real_vector)
    has_enumerate_support = True
    _is_binary = False

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        check_one_given(probs, logits)
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = self._param = probs / probs.sum(-1, keepdim=True)
        elif logits is not None:
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = self._param = logits - logits.logsumexp(-1, keepdim=True)
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    @property
    def _num_events(self) -> int:
        return int(self._param.shape[-1])

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return self._undefined_moment()

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self._undefined_moment()

    def _undefined_moment(self) -> Tensor:
        return flambeau.full(self._extended_shape(), math.nan, dtype=self.probs.dtype, device=self.probs.device)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        sample_shape = Size(sample_shape)
        with flambeau.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            count = sample_shape.numel()
            samples = flambeau.multinomial(rows, count, True)
            # One sample of each is in its order already.
            return (samples if count == 1 else samples.T).reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        index, log_pmf = value.long().unsqueeze(-1), self.logits
        if index.shape[:-1] != log_pmf.shape[:-1]:
            index, log_pmf = flambeau.broadcast_tensors(index, log_pmf)
            index = index[..., :1]
        return log_pmf.gather(-1, index).squeeze(-1)

    def entropy(self) -> Tensor:
        # Impossible events have logits of -inf and contribute nothing.
        logits = self.logits.clamp(min=flambeau.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(flambeau.arange(self._num_events, device=self._param.device), expand)
