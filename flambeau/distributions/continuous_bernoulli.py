"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import flambeau
from flambeau import Size, Tensor

from . import constraints
from ._functions import binary_cross_entropy, where
from ._probs import _ProbsOrLogits
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(_ProbsOrLogits, ExponentialFamily):
    """A distribution over [0, 1] with density ~ probs ** x * (1 - probs) ** (1 - x).

    The exact formulas are 0 / 0 at probs = 1/2: between the `lims`, Taylor series take their place.

    Args:
        probs (Tensor or float, optional): the parameter between zero and one; give it or `logits`.
        logits (Tensor or float, optional): the same as log-odds; give them or `probs`.
        lims (tuple[float, float]): where, around one half, a Taylor series is used in place of the formula, which is
            unstable there. Default: `(0.499, 0.501)`.

    Example:
        >>> torch.distributions.ContinuousBernoulli(torch.tensor([0.5])).mean
        tensor([0.5000])
    """

    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _kept = ("_lims",)

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._store(probs, logits)
        if probs is not None:
            if validate_args is not None and not self.arg_constraints["probs"].check(self.probs).all():
                raise ValueError(f"The parameter probs has invalid values: {self.probs}")
            self.probs = self._param = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    def _is_exact(self) -> Tensor:
        """Where `probs` is far enough from 1/2 for the exact formulas."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _exact_probs(self) -> Tensor:
        """`probs`, replaced where the exact formulas are not used, so that they stay finite there."""
        return where(self._is_exact(), self.probs, self._lims[0] * flambeau.ones_like(self.probs))

    def _cont_bern_log_norm(self) -> Tensor:
        """The logarithm of the normalising constant, 2 artanh(1 - 2 p) / (1 - 2 p)."""
        p = self._exact_probs()
        below = where(p <= 0.5, p, flambeau.zeros_like(p))
        above = where(p >= 0.5, p, flambeau.ones_like(p))
        odds = ((-p).log1p() - p.log()).abs().log()
        width = where(p <= 0.5, (-2.0 * below).log1p(), (2.0 * above - 1.0).log())
        x2 = (self.probs - 0.5) ** 2
        return where(self._is_exact(), odds - width, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x2) * x2)

    @property
    def mean(self) -> Tensor:
        p = self._exact_probs()
        exact = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return where(self._is_exact(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x**2) * x)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        p = self._exact_probs()
        exact = p * (p - 1.0) / (1.0 - 2.0 * p) ** 2 + 1.0 / ((-p).log1p() - p.log()) ** 2
        x2 = (self.probs - 0.5) ** 2
        return where(self._is_exact(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x2) * x2)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(flambeau.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy(logits, value) + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        p = self._exact_probs()
        exact = (p**value * (1.0 - p) ** (1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = where(self._is_exact(), exact, value)
        return where(
            value <= 0.0,
            flambeau.zeros_like(inside),
            where(value >= 1.0, flambeau.ones_like(inside), inside),
        )

    def icdf(self, value: Tensor) -> Tensor:
        p = self._exact_probs()
        exact = ((-p + value * (2.0 * p - 1.0)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return where(self._is_exact(), exact, value)

    def entropy(self) -> Tensor:
        off = (-self.probs).log1p()
        return self.mean * (off - self.probs.log()) - self._cont_bern_log_norm() - off

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        exact = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        safe = where(exact, x, (self._lims[0] - 0.5) * flambeau.ones_like(x))
        log_norm = (safe.exp() - 1.0).abs().log() - safe.abs().log()
        return where(exact, log_norm, 0.5 * x + x**2 / 24.0 - x**4 / 2880.0)
