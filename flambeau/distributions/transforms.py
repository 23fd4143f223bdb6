"""Transforms: invertible maps with the logarithm of the absolute determinant of their Jacobian."""

from __future__ import annotations

import math
from typing import Any

import flambeau
from flambeau import Size, Tensor

from .._core.names.same_as import same_as
from .._core.text.inherited_docs import documented_like
from . import constraints
from ._functions import cholesky, logsigmoid, softplus
from ._transform import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Shape,
    StackTransform,
    Transform,
    _check_ndims,
    _InverseTransform,  # noqa: F401  (programs import it from here)
    _Parameterless,
    _with_event_dim,
    identity_transform,
)
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


# Elementwise transforms -----------------------------------------------------------------------------------------------


class ExpTransform(_Parameterless):
    """y = exp(x).

    Args:
        cache_size (int): 1 remembers the last pair of x and y, so that an inverse need not be computed; 0 remembers
            nothing. Default: `0`.

    Example:
        >>> torch.distributions.ExpTransform()(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 2.7183])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x ** exponent, for positive numbers.

    Args:
        exponent (Tensor or float): the exponent.
        cache_size (int): 1 remembers the last pair of x and y, so that an inverse need not be computed; 0 remembers
            nothing. Default: `0`.

    Example:
        >>> torch.distributions.PowerTransform(2.0)(torch.tensor([3.0]))
        tensor([9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Tensor | float, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    @lazy_property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    __hash__ = None

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Shape) -> Shape:
        return flambeau.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


@documented_like(ExpTransform)
class SigmoidTransform(_Parameterless):
    """y = 1 / (1 + exp(-x)), kept off 0 and 1.

    Example:
        >>> torch.distributions.SigmoidTransform()(torch.tensor([0.0]))
        tensor([0.5000])
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        finfo = flambeau.finfo(y.dtype)
        y = y.clamp(min=finfo.tiny, max=1.0 - finfo.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    finfo = flambeau.finfo(x.dtype)
    return flambeau.sigmoid(x).clamp(min=finfo.tiny, max=1.0 - finfo.eps)


@documented_like(ExpTransform)
class SoftplusTransform(_Parameterless):
    """y = log(1 + exp(x)).

    Example:
        >>> torch.distributions.SoftplusTransform()(torch.tensor([0.0]))
        tensor([0.6931])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


@documented_like(ExpTransform)
class TanhTransform(_Parameterless):
    """y = tanh(x): better behaved than its composition from sigmoid and affine transforms.

    Example:
        >>> torch.distributions.TanhTransform()(torch.tensor([0.0, 100.0]))
        tensor([0., 1.])
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return flambeau.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return _log_tanh_slope(x)


def _log_tanh_slope(x: Tensor) -> Tensor:
    """log(1 - tanh(x) ** 2), without the cancellation."""
    return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


@documented_like(ExpTransform)
class AbsTransform(_Parameterless):
    """y = |x|; of the two inverses it takes the positive one.

    Example:
        >>> torch.distributions.AbsTransform()(torch.tensor([-2.0, 3.0]))
        tensor([2., 3.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x, where events have `event_dim` dimensions.

    Args:
        loc (Tensor or float): what is added.
        scale (Tensor or float): what is multiplied.
        event_dim (int): how many of the last dimensions belong to one event. Default: `0`.
        cache_size (int): 1 remembers the last pair of x and y, so that an inverse need not be computed; 0 remembers
            nothing. Default: `0`.

    Example:
        >>> transform = torch.distributions.AffineTransform(loc=1.0, scale=2.0)
        >>> transform(torch.tensor([0.0, 3.0])), transform.inv(torch.tensor([7.0]))
        (tensor([1., 7.]), tensor([3.]))
    """

    bijective = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    event_dim: int = same_as("_event_dim")

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return _with_event_dim(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return _with_event_dim(constraints.real, self.event_dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    __hash__ = None

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            slopes = self.scale.abs().log()
        else:
            slopes = flambeau.full_like(x, math.log(abs(self.scale)))
        if not self.event_dim:
            return slopes.expand(x.shape)
        result = slopes.reshape((*slopes.shape[: -self.event_dim], -1)).sum(-1)
        return result.expand(x.shape[: -self.event_dim])

    def forward_shape(self, shape: Shape) -> Shape:
        return flambeau.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


def _same(mine: Tensor | float, other: Tensor | float) -> bool:
    equal = mine == other
    return bool(equal.all()) if isinstance(equal, Tensor) else bool(equal)


class CumulativeDistributionTransform(Transform):
    """y = F(x), where F is the `cdf` of a distribution of numbers.

    Args:
        distribution (Distribution): the distribution whose `cdf` maps the numbers.
        cache_size (int): 1 remembers the last pair of x and y, so that an inverse need not be computed; 0 remembers
            nothing. Default: `0`.

    Example:
        >>> normal = torch.distributions.Normal(0.0, 1.0)
        >>> torch.distributions.CumulativeDistributionTransform(normal)(torch.tensor([0.0]))
        tensor([0.5000])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain: Any = same_as("distribution.support")

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)


# Vectors and matrices -------------------------------------------------------------------------------------------------


@documented_like(ExpTransform)
class SoftmaxTransform(_Parameterless):
    """Vectors to the simplex by softmax; not injective, since a common shift has no effect.

    Example:
        >>> torch.distributions.SoftmaxTransform()(torch.zeros(2))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return flambeau.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Shape) -> Shape:
        _check_ndims(shape, 1)
        return shape

    inverse_shape = forward_shape


@documented_like(ExpTransform)
class StickBreakingTransform(_Parameterless):
    """Vectors to the simplex of one dimension more: each number breaks its share off the rest of a stick.

    Example:
        >>> torch.distributions.StickBreakingTransform()(torch.zeros(2))
        tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        shares = _clipped_sigmoid(x - _stick_offsets(x))
        return _with_ones(shares, after=True) * _with_ones((1 - shares).cumprod(-1))

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = y[..., :-1]
        rest = (1 - pieces.cumsum(-1)).clamp(min=flambeau.finfo(y.dtype).tiny)
        return pieces.log() - rest.log() + _stick_offsets(pieces)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - _stick_offsets(x)
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Shape) -> Shape:
        _check_ndims(shape, 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Shape) -> Shape:
        _check_ndims(shape, 1)
        return Size((*shape[:-1], shape[-1] - 1))


def _stick_offsets(x: Tensor) -> Tensor:
    """What makes zeros break a stick into equal pieces: the logarithms of n, n - 1, ..., 1."""
    n: int = x.size(-1)
    return (n + 1 - flambeau.ones_like(x).cumsum(-1)).log()


def _with_ones(x: Tensor, after: bool = False) -> Tensor:
    """`x` with ones added in front (or behind), along the last dimension."""
    ones = x.new_ones((*x.shape[:-1], 1))
    return flambeau.cat([x, ones] if after else [ones, x], -1)


@documented_like(ExpTransform)
class CorrCholeskyTransform(Transform):
    """Vectors of length D * (D - 1) / 2 to Cholesky factors of D x D correlation matrices.

    Each number, squeezed by tanh into (-1, 1), is the share of what is left of the length of its row.

    Example:
        >>> factor = torch.distributions.CorrCholeskyTransform()(torch.zeros(1))
        >>> factor @ factor.T
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = flambeau.finfo(x.dtype).eps
        shares = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        rest = (1 - shares**2).sqrt().cumprod(-1)
        diagonal = flambeau.eye(shares.shape[-1], dtype=shares.dtype, device=shares.device)
        return (shares + diagonal) * _with_ones(rest[..., :-1])

    def _inverse(self, y: Tensor) -> Tensor:
        rest = 1 - (y * y).cumsum(-1)
        before = tril_matrix_to_vec(_with_ones(rest[..., :-1]), diag=-1)
        shares = tril_matrix_to_vec(y, diag=-1) / before.sqrt()
        return (shares.log1p() - (-shares).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        rest = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        return 0.5 * rest.log().sum(-1) + _log_tanh_slope(x).sum(-1)

    def forward_shape(self, shape: Shape) -> Shape:
        _check_ndims(shape, 1)
        size = round(0.5 + (0.25 + 2 * shape[-1]) ** 0.5)
        if size * (size - 1) // 2 != shape[-1]:
            raise ValueError(f"Input is not a flattened lower-diagonal number: {shape[-1]}")
        return Size((*shape[:-1], size, size))

    def inverse_shape(self, shape: Shape) -> Shape:
        _check_ndims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError(f"Input is not square: {tuple(shape)}")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


@documented_like(ExpTransform)
class LowerCholeskyTransform(_Parameterless):
    """Matrices to Cholesky factors: the upper part is dropped, the diagonal exponentiated.

    Example:
        >>> torch.distributions.LowerCholeskyTransform()(torch.tensor([[0.0, 5.0], [2.0, 0.0]]))
        tensor([[1., 0.],
                [2., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


@documented_like(ExpTransform)
class PositiveDefiniteTransform(_Parameterless):
    """Matrices to positive definite ones, through their Cholesky factors.

    Example:
        >>> torch.distributions.PositiveDefiniteTransform()(torch.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(cholesky(y))
