"""Distributions that are given by probabilities or by logits."""

from __future__ import annotations

from typing import Any

from flambeau import Size, Tensor

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


def check_one_given(probs: Any, logits: Any) -> None:
    """Raise unless exactly one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class _ProbsOrLogits(Distribution):
    """Has `probs` and `logits`: one was given, the other is computed when it is first asked for."""

    arg_constraints = constraints.by_name(probs=constraints.unit_interval, logits=constraints.real)
    _batched = ("_param",)
    _is_binary = True
    _param: Tensor
    """The one that was given."""

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds, or the normalised log-probabilities of several events."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    def _store(self, probs: Tensor | float | None, logits: Tensor | float | None, *others: Any) -> tuple[Tensor, ...]:
        """Keep the one that is given, broadcast together with `others`, which come back."""
        check_one_given(probs, logits)
        self._param, *rest = broadcast_all(logits if probs is None else probs, *others)
        if probs is None:
            self.logits = self._param
        else:
            self.probs = self._param
        return tuple(rest)

    @property
    def param_shape(self) -> Size:
        """The shape of `probs` and of `logits`."""
        return self._param.shape
