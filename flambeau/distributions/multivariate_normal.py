"""The multivariate normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import flambeau
from flambeau import Size, Tensor

from .._core.names.same_as import same_as
from . import constraints
from ._matrices import _GivenByMatrix, log_det_of_tril, mahalanobis, matvec
from .distribution import Distribution  # noqa: F401  (programs import it from here)
from .utils import _standard_normal

__all__ = ["MultivariateNormal"]


class MultivariateNormal(_GivenByMatrix):
    """Normal vectors with mean `loc`, and a covariance matrix, its inverse, or its Cholesky factor `scale_tril`.

    The factor is what the computations use: give it where you have it.

    >>> MultivariateNormal(flambeau.zeros(2), flambeau.eye(2)).log_prob(flambeau.zeros(2))
    tensor(-1.8379)

    Args:
        loc (Tensor): the mean, (..., N).
        covariance_matrix (Tensor, optional): the covariance matrix; give one of the three matrices.
        precision_matrix (Tensor, optional): the inverse of the covariance matrix; give one of the three matrices.
        scale_tril (Tensor, optional): the Cholesky factor of the covariance matrix, lower triangular; give one of the
            three matrices.
    """

    arg_constraints = constraints.by_name(
        loc=constraints.real_vector,
        covariance_matrix=constraints.positive_definite,
        precision_matrix=constraints.positive_definite,
        scale_tril=constraints.lower_cholesky,
    )
    support = constraints.real_vector
    has_rsample = True
    _kept = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = [each for each in (covariance_matrix, precision_matrix, scale_tril) if each is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        if given[0].dim() < 2:
            name = "covariance_matrix" if covariance_matrix is not None else "precision_matrix"
            name = "scale_tril matrix" if scale_tril is not None else name
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = flambeau.broadcast_shapes(given[0].shape[:-2], loc.shape[:-1])
        self.loc = loc.expand((*batch_shape, -1))
        self._set_matrix(
            batch_shape,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        super().__init__(batch_shape, loc.shape[-1:], validate_args=validate_args)
        self._set_factor(covariance_matrix, precision_matrix, scale_tril)

    mean: Tensor = same_as("loc")
    mode: Tensor = same_as("loc")

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + matvec(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        distance = mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        half_log_det = log_det_of_tril(self._unbroadcasted_scale_tril)
        return -0.5 * (distance + int(self._event_shape[0]) * math.log(2 * math.pi)) - half_log_det

    def entropy(self) -> Tensor:
        half_log_det = log_det_of_tril(self._unbroadcasted_scale_tril)
        entropy = half_log_det + 0.5 * int(self._event_shape[0]) * (1.0 + math.log(2 * math.pi))
        return entropy.expand(self._batch_shape)
