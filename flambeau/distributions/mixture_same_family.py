"""Mixtures of distributions of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Size, Tensor

from . import constraints
from .categorical import Categorical
from .constraints import MixtureSameFamilyConstraint
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: `mixture_distribution` chooses among the last batch dimension of `component_distribution`.

    Args:
        mixture_distribution (Categorical): the distribution that chooses a component.
        component_distribution (Distribution): the components, along the last batch dimension.

    Example:
        >>> mix = torch.distributions.Categorical(torch.tensor([0.25, 0.75]))
        >>> parts = torch.distributions.Normal(torch.tensor([0.0, 4.0]), torch.ones(2))
        >>> torch.distributions.MixtureSameFamily(mix, parts).mean
        tensor(3.)
    """

    arg_constraints = constraints.by_name()
    has_rsample = False
    _batched = ("_mixture_distribution", "_component_distribution")

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        mixtures = mixture_distribution.batch_shape
        components = component_distribution.batch_shape[:-1]
        for ours, theirs in zip(reversed(mixtures), reversed(components), strict=False):
            if 1 not in (ours, theirs) and ours != theirs:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixtures}) is not compatible with "
                    f"`component_distribution.batch_shape`({components})"
                )
        count = mixture_distribution.logits.shape[-1]
        if count != component_distribution.batch_shape[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({component_distribution.batch_shape[-1]})"
            )
        super().__init__(components, component_distribution.event_shape, validate_args=validate_args)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution that chooses a component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch dimension."""
        return self._component_distribution

    @constraints.dependent_property
    def support(self) -> Any:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def _component_dim(self) -> int:
        return -1 - len(self._event_shape)

    def _weights(self) -> Tensor:
        """The probabilities of the components, with a dimension of one for each dimension of the event."""
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * len(self._event_shape))

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(self._component_dim)

    @property
    def variance(self) -> Tensor:
        """The law of total variance."""
        weights, parts = self._weights(), self._component_distribution
        within = (weights * parts.variance).sum(self._component_dim)
        distances = parts.mean - self.mean.unsqueeze(self._component_dim)
        return within + (weights * distances.pow(2.0)).sum(self._component_dim)

    def cdf(self, x: Tensor) -> Tensor:
        cdf = self._component_distribution.cdf(x.unsqueeze(self._component_dim))
        return (cdf * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check_sample(x)
        log_prob = self._component_distribution.log_prob(x.unsqueeze(self._component_dim))
        log_weights = flambeau.log_softmax(self._mixture_distribution.logits, -1)
        return flambeau.logsumexp(log_prob + log_weights, -1)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with flambeau.no_grad():
            chosen = self._mixture_distribution.sample(sample_shape)
            samples = self._component_distribution.sample(sample_shape)
            dim = len(sample_shape) + len(self._batch_shape)
            index = chosen.reshape(chosen.shape + (1,) * (len(self._event_shape) + 1))
            shape = (*samples.shape[:dim], 1, *self._event_shape)
            return samples.gather(dim, index.expand(shape)).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
