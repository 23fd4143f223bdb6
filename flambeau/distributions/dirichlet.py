"""The Dirichlet distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Size, Tensor
from flambeau.autograd.function import Function, once_differentiable

from . import constraints
from ._functions import where
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


class _Dirichlet(Function):
    """A sample with its derivative by the concentration."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        sample = flambeau._sample_dirichlet(concentration)
        ctx.save_for_backward(sample, concentration)
        return sample

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        sample: Tensor
        concentration: Tensor
        sample, concentration = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        slope: Tensor = flambeau._dirichlet_grad(sample, concentration, total)
        # An element can only grow at the expense of all, in proportion to their size.
        return slope * (grad_output - (sample * grad_output).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """A distribution over vectors of probabilities, centred on `concentration` divided by its sum.

    Args:
        concentration (Tensor): the parameters along the last dimension, (..., K).

    Example:
        >>> torch.distributions.Dirichlet(torch.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints = constraints.by_name(concentration=constraints.independent(constraints.positive, 1))
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        concentration = self.concentration.expand(self._extended_shape(sample_shape))
        sample: Tensor = _Dirichlet.apply(concentration)
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        alpha = self.concentration
        return flambeau.xlogy(alpha - 1.0, value).sum(-1) + alpha.sum(-1).lgamma() - alpha.lgamma().sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        excess = (self.concentration - 1).clamp(min=0.0)
        mode = excess / excess.sum(-1, True)
        # With all concentrations below one, the density is infinite in every corner: the first stands for them.
        in_corner = (self.concentration < 1).all(-1, keepdim=True)
        corner = flambeau.zeros_like(mode)
        corner[..., 0] = 1
        return where(in_corner, corner, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        total = self.concentration.sum(-1)
        k: int = self.concentration.size(-1)
        return (
            self.concentration.lgamma().sum(-1)
            - total.lgamma()
            - (k - total) * total.digamma()
            - ((self.concentration - 1.0) * self.concentration.digamma()).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
