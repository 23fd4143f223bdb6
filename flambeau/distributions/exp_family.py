"""Exponential families: densities exp(<natural parameters, t(x)> - log_normalizer) * carrier measure."""

from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution that knows its natural parameters and its log normaliser; its entropy follows from them.

    Args:
        batch_shape (sequence of ints): the shape of the batch of distributions. Default: `torch.Size([])`.
        event_shape (sequence of ints): the shape of one sample. Default: `torch.Size([])`.

    Example:
        >>> issubclass(torch.distributions.Gamma, torch.distributions.ExponentialFamily)
        True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any, **options: Any) -> Tensor:
        """The logarithm of the normalizer, as a function of the natural parameters."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Tensor | float:
        """The expected logarithm of the carrier measure."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """A(t) - <t, A'(t)> - E[log h(x)]: the mean of the sufficient statistics is the gradient of A."""
        carrier = self._mean_carrier_measure
        params = [param.detach().requires_grad_() for param in self._natural_params]
        normalizer = self._log_normalizer(*params)
        means = flambeau.autograd.grad(normalizer.sum(), params, create_graph=True)
        result = normalizer - carrier
        for param, mean in zip(params, means, strict=True):
            result = result - (param * mean).reshape((*self._batch_shape, -1)).sum(-1)
        return result
