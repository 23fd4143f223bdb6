"""The relaxed Bernoulli distribution."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau
from flambeau import Size, Tensor

from .._core.names.same_as import same_as
from . import constraints
from ._probs import _ProbsOrLogits
from .distribution import Distribution  # noqa: F401  (programs import it from here)
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(_ProbsOrLogits):
    """The logit of a relaxed Bernoulli number: a logistic distribution around `logits / temperature`."""

    support = constraints.real
    has_rsample = True
    _kept = ("temperature",)

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._store(probs, logits)
        self.temperature = temperature
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniforms = clamp_probs(flambeau.rand(shape, dtype=probs.dtype, device=probs.device))
        logistic = uniforms.log() - (-uniforms).log1p()
        return (logistic + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        distance = logits - value * self.temperature
        return flambeau.as_tensor(self.temperature).log() + distance - 2 * distance.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in (0, 1) that tend to zeros and ones as `temperature` falls, with gradients through samples.

    Args:
        temperature (Tensor or float): how soft the samples are; they become hard as it falls to zero.
        probs (Tensor or float, optional): the probability of one; give it or `logits`.
        logits (Tensor or float, optional): the log-odds of one; give them or `probs`.

    Example:
        >>> d = torch.distributions.RelaxedBernoulli(torch.tensor(0.1), torch.tensor([0.5], requires_grad=True))
        >>> d.rsample().requires_grad
        True
    """

    arg_constraints = LogitRelaxedBernoulli.arg_constraints
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    temperature: Tensor | float = same_as("base_dist.temperature", "How far from zero and one the samples are.")
    logits: Tensor = same_as("base_dist.logits", "The log-odds.")
    probs: Tensor = same_as("base_dist.probs", "The probability of one.")
