"""The relaxed categorical distribution."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau
from flambeau import Size, Tensor

from .._core.names.same_as import same_as
from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithm of relaxed unit vectors, after C. J. Maddison and others, "The Concrete Distribution", 2017."""

    arg_constraints = constraints.by_name(probs=constraints.simplex, logits=constraints.real_vector)
    support = constraints.real_vector  # of numbers whose exponentials add up to one
    has_rsample = True
    _batched = ("_categorical",)
    _kept = ("temperature",)
    temperature: Tensor | float

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    param_shape: Size = same_as("_categorical.param_shape", "The shape of `probs` and of `logits`.")
    logits: Tensor = same_as("_categorical.logits", "The normalised log-probabilities.")
    probs: Tensor = same_as("_categorical.probs", "The probabilities.")

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        uniforms = clamp_probs(flambeau.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        gumbels = -(-uniforms.log()).log()
        return flambeau.log_softmax((self.logits + gumbels) / self.temperature, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        k = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        temperature = flambeau.as_tensor(self.temperature, dtype=value.dtype, device=value.device)
        scale = flambeau.full_like(temperature, k).lgamma() - temperature.log() * (1 - k)
        return flambeau.log_softmax(logits - value * temperature, -1).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of the simplex that tend to unit vectors as `temperature` falls, with gradients through samples.

    Args:
        temperature (Tensor or float): how soft the samples are; they become hard as it falls to zero.
        probs (Tensor, optional): the probabilities along the last dimension, (..., K); give these or `logits`.
        logits (Tensor, optional): the log-odds or unnormalised log-probabilities; give these or `probs`, not both.

    Example:
        >>> d = torch.distributions.RelaxedOneHotCategorical(torch.tensor(0.5), torch.tensor([0.2, 0.8]))
        >>> round(d.sample().sum().item(), 4)
        1.0
    """

    arg_constraints = constraints.by_name(probs=constraints.simplex, logits=constraints.real_vector)
    support = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor | float:
        """How far from the corners of the simplex the samples are."""
        return self.base_dist.temperature

    logits: Tensor = same_as("base_dist.logits", "The normalised log-probabilities.")
    probs: Tensor = same_as("base_dist.probs", "The probabilities.")
