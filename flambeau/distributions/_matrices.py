"""Linear algebra on batches of covariance matrices and their Cholesky factors."""

from __future__ import annotations

import flambeau
from flambeau import Size, Tensor

from ._functions import cholesky, solve_lower
from .distribution import Distribution
from .utils import lazy_property


def log_det_of_tril(factor: Tensor) -> Tensor:
    """The logarithm of the determinant of triangular matrices."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def matvec(matrix: Tensor, vector: Tensor) -> Tensor:
    """Products of matrices and vectors."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def mahalanobis(factor: Tensor, vector: Tensor) -> Tensor:
    """v^T (L L^T)^-1 v for Cholesky factors L.

    Dimensions of `vector` that L lacks, those of samples, become right-hand sides of one solve.
    """
    extra = max(vector.dim() + 1 - factor.dim(), 0)
    samples, rest = vector.shape[:extra], vector.shape[extra:]
    columns = vector.reshape((samples.numel(), *rest)).movedim(0, -1)
    squares = solve_lower(factor, columns).pow(2).sum(-2).movedim(-1, 0)
    return squares.reshape((*samples, *squares.shape[1:]))


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse: with P = U U^T, U upper triangular, it is U^-T."""
    upper = cholesky(precision.flip((-2, -1))).flip((-2, -1))
    eye = flambeau.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return solve_lower(upper.mT, eye)


def of_batch(distribution: Distribution, matrix: Tensor) -> Tensor:
    """The matrix of each distribution in a batch."""
    return matrix.expand((*distribution.batch_shape, *matrix.shape[-2:]))


class _GivenByMatrix(Distribution):
    """Has a covariance matrix, a precision matrix and a Cholesky factor: one was given, the others follow."""

    _unbroadcasted_scale_tril: Tensor

    def _set_matrix(self, batch_shape: Size, **given: Tensor | None) -> None:
        """Keep the one given matrix, of each distribution in the batch."""
        for name, value in given.items():
            if value is not None:
                setattr(self, name, value.expand((*batch_shape, -1, -1)))

    def _set_factor(
        self, covariance_matrix: Tensor | None, precision_matrix: Tensor | None, scale_tril: Tensor | None
    ) -> None:
        """Factor the one given matrix, after it has been validated and before it is broadcast."""
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = cholesky(covariance_matrix)
        elif precision_matrix is not None:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(precision_matrix)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance matrix."""
        return of_batch(self, self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        return of_batch(self, self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        return of_batch(self, flambeau.cholesky_inverse(self._unbroadcasted_scale_tril))
