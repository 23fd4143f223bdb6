"""The categorical distribution over unit vectors."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau
from flambeau import Size, Tensor

from .._core.text.inherited_docs import documented_like
from . import constraints
from ._functions import one_hot
from ._of_categorical import OfCategorical
from .categorical import Categorical

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OfCategorical):
    """The categorical distribution with samples as unit vectors instead of numbers.

    Args:
        probs (Tensor, optional): the probabilities along the last dimension, (..., K); give these or `logits`.
        logits (Tensor, optional): the log-odds or unnormalised log-probabilities; give these or `probs`, not both.

    Example:
        >>> torch.distributions.OneHotCategorical(torch.tensor([0.0, 1.0])).sample()
        tensor([0., 1.])
    """

    arg_constraints = constraints.by_name(probs=constraints.simplex, logits=constraints.real_vector)
    support = constraints.one_hot
    has_enumerate_support = True
    _batched = ("_categorical",)

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return one_hot(self.probs.argmax(-1), self.probs.shape[-1]).to(self.probs)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return one_hot(self._categorical.sample(sample_shape), self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        units = flambeau.eye(self.event_shape[0], dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(units, expand)


@documented_like(OneHotCategorical)
class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The categorical distribution with unit vectors as samples, which pass gradients straight through to `probs`.

    Example:
        >>> probs = torch.tensor([0.5, 0.5], requires_grad=True)
        >>> sample = torch.distributions.OneHotCategoricalStraightThrough(probs).rsample()
        >>> sample.sum().item(), sample.requires_grad
        (1.0, True)
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
