"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Size, Tensor

from . import constraints
from ._functions import log_abs_det, where
from ._matrices import _GivenByMatrix, log_det_of_tril
from .chi2 import Chi2
from .exp_family import ExponentialFamily

__all__ = ["Wishart"]


class Wishart(_GivenByMatrix, ExponentialFamily):
    """The distribution of X^T X, where X is made of `df` normal vectors of the given covariance matrix.

    Args:
        df (Tensor or float): the number of vectors; more than the number of columns less one.
        covariance_matrix (Tensor, optional): the covariance matrix; give one of the three matrices.
        precision_matrix (Tensor, optional): the inverse of the covariance matrix; give one of the three matrices.
        scale_tril (Tensor, optional): the Cholesky factor of the covariance matrix, lower triangular; give one of the
            three matrices.

    Example:
        >>> torch.distributions.Wishart(torch.tensor(4.0), torch.eye(2)).mean
        tensor([[4., 0.],
                [0., 4.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = ("df", "covariance_matrix", "precision_matrix", "scale_tril", "_dist_chi2")
    _kept = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = [each for each in (covariance_matrix, precision_matrix, scale_tril) if each is not None]
        assert len(given) == 1, "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        (matrix,) = given
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, Tensor):
            batch_shape = flambeau.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        else:
            batch_shape = matrix.shape[:-2]
            self.df = flambeau.tensor(df, dtype=matrix.dtype, device=matrix.device)
        event_shape = matrix.shape[-2:]
        p = event_shape[-1]
        if (self.df <= p - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {p - 1}.")
        self._set_matrix(
            batch_shape,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if (self.df < p).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._set_factor(covariance_matrix, precision_matrix, scale_tril)
        falling = flambeau.arange(p, dtype=matrix.dtype, device=matrix.device)
        self._dist_chi2 = Chi2((self.df.unsqueeze(-1) - falling).expand((*batch_shape, -1)))

    @property
    def arg_constraints(self) -> Any:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def _of_matrices(self, value: Tensor) -> Tensor:
        return value.reshape((*self._batch_shape, 1, 1) if value.dim() else ())

    @property
    def mean(self) -> Tensor:
        return self._of_matrices(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return self._of_matrices(factor.masked_fill(factor <= 0, math.nan)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._of_matrices(self.df) * (self.covariance_matrix.pow(2) + products)

    def _bartlett_sampling(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Samples by their Cholesky factors: chi numbers on the diagonal, normal numbers below."""
        p = self._event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed()
        rows, columns = flambeau.tril_indices(p, p, -1, device=noise.device)
        below = (*sample_shape, *self._batch_shape, p * (p - 1) // 2)
        noise[..., rows, columns] = flambeau.randn(below, dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Sequence[int] = Size(), max_try_correction: int | None = None) -> Tensor:
        """Random matrices; those that rounding made singular are drawn again, `max_try_correction` (10) times."""
        sample = self._bartlett_sampling(sample_shape)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            singular = ~self.support.check(sample)
            if not singular.any():
                break
            again = self._bartlett_sampling(sample_shape)
            sample = where(singular.unsqueeze(-1).unsqueeze(-1), again, sample)
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        nu, p = self.df, int(self._event_shape[-1])
        factor = self._unbroadcasted_scale_tril
        traces = flambeau.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (
            -nu * (p * math.log(2) / 2 + log_det_of_tril(factor))
            - flambeau.mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * log_abs_det(value)
            - traces / 2
        )

    def entropy(self) -> Tensor:
        nu, p = self.df, int(self._event_shape[-1])
        halves = flambeau.arange(p, dtype=nu.dtype, device=nu.device) / 2
        mvdigamma = flambeau.digamma((nu / 2).unsqueeze(-1) - halves).sum(-1)
        return (
            (p + 1) * (p * math.log(2) / 2 + log_det_of_tril(self._unbroadcasted_scale_tril))
            + flambeau.mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * mvdigamma
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = int(self._event_shape[-1])
        half_df = y + (p + 1) / 2
        log_det = -log_abs_det(-2 * x) + math.log(2) * p
        return half_df * log_det + flambeau.mvlgamma(half_df, p=p)
