"""The multivariate normal distribution with a covariance matrix of low rank plus a diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import flambeau
from flambeau import Size, Tensor

from .._core.names.same_as import same_as
from . import constraints
from ._functions import cholesky, solve_lower
from ._matrices import log_det_of_tril, mahalanobis, matvec, of_batch
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def capacitance_tril(factor: Tensor, diagonal: Tensor) -> Tensor:
    """The Cholesky factor of I + W^T D^-1 W, the small matrix in the lemmas of Woodbury and of the determinant."""
    product = factor.mT / diagonal.unsqueeze(-2) @ factor
    eye = flambeau.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    return cholesky(product + eye)


def lowrank_log_det(diagonal: Tensor, capacitance: Tensor) -> Tensor:
    """log |W W^T + D| by the determinant lemma."""
    return 2 * log_det_of_tril(capacitance) + diagonal.log().sum(-1)


def lowrank_mahalanobis(factor: Tensor, diagonal: Tensor, vector: Tensor, capacitance: Tensor) -> Tensor:
    """v^T (W W^T + D)^-1 v by Woodbury's lemma."""
    projected = matvec(factor.mT / diagonal.unsqueeze(-2), vector)
    return (vector.pow(2) / diagonal).sum(-1) - mahalanobis(capacitance, projected)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with covariance matrix `cov_factor @ cov_factor.T + cov_diag.diag()`.

    Its computations grow linearly with the length of the vectors, not with its cube.

    Args:
        loc (Tensor): the mean, (..., N).
        cov_factor (Tensor): the factor of the covariance, (..., N, rank).
        cov_diag (Tensor): what is added to its diagonal, (..., N).

    Example:
        >>> factor = torch.tensor([[1.0], [1.0]])
        >>> d = torch.distributions.LowRankMultivariateNormal(torch.zeros(2), factor, torch.ones(2))
        >>> d.covariance_matrix
        tensor([[2., 1.],
                [1., 2.]])
    """

    arg_constraints = constraints.by_name(
        loc=constraints.real_vector,
        cov_factor=constraints.independent(constraints.real, 2),
        cov_diag=constraints.independent(constraints.positive, 1),
    )
    support = constraints.real_vector
    has_rsample = True
    _batched = ("scale_tril", "covariance_matrix", "precision_matrix")
    _kept = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = flambeau.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand((*batch_shape, -1))
        self.cov_factor = cov_factor.expand((*batch_shape, -1, -1))
        self.cov_diag = cov_diag.expand((*batch_shape, -1))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = capacitance_tril(cov_factor, cov_diag)

    mean: Tensor = same_as("loc")
    mode: Tensor = same_as("loc")

    @lazy_property
    def variance(self) -> Tensor:
        """The diagonal of the covariance matrix."""
        variance = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance matrix."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        eye = flambeau.eye(self._event_shape[0], dtype=scaled.dtype, device=scaled.device)
        return of_batch(self, root * cholesky(scaled @ scaled.mT + eye))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        factor = self._unbroadcasted_cov_factor
        return of_batch(self, factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        weighted = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        solved = solve_lower(self._capacitance_tril, weighted)
        return of_batch(self, self._unbroadcasted_cov_diag.reciprocal().diag_embed() - solved.mT @ solved)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        rank = self.cov_factor.shape[-1]
        eps_factor = _standard_normal(Size((*shape[:-1], rank)), dtype=self.loc.dtype, device=self.loc.device)
        eps_diag = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        shift = matvec(self._unbroadcasted_cov_factor, eps_factor)
        return self.loc + shift + self._unbroadcasted_cov_diag.sqrt() * eps_diag

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        distance = lowrank_mahalanobis(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, value - self.loc, self._capacitance_tril
        )
        log_det = lowrank_log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)
        return -0.5 * (log_det + distance + int(self._event_shape[0]) * math.log(2 * math.pi))

    def entropy(self) -> Tensor:
        log_det = lowrank_log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)
        entropy = 0.5 * (log_det + int(self._event_shape[0]) * (1.0 + math.log(2 * math.pi)))
        return entropy.expand(self._batch_shape)
