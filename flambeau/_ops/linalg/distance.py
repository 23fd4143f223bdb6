"""Distances between vectors, in pairs or all with all; similarity; vectors made unit vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.arrays.quick import joint_shape
from ..._core.backend import as_array, beside
from ..._core.dtype import FLOAT, LEGACY_NAMES
from ..._core.geometry.layout import contiguous_array
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL, in_full, on
from ..._dispatch.arguments.precision import as_floating
from ..._dispatch.arguments.promotion import result_type_of
from ..._dispatch.axes import ELEMENTS, MATRICES, Along
from ..._dispatch.call.elementwise import shape_error
from ..._dispatch.composite import composite
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.factory import constant_beside
from ..._dispatch.public.registry import public
from ..reduce.norm import _norm_gradient, _norm_of, vector_norm
from .checks import batch_shape

_MANY = 25
"""With more rows than this, Euclidean distances are computed by a product of matrices."""


def _direction(difference: Any, distance: Any, p: float) -> Any:
    """The derivative of the `p`-norm of `difference`, zero where the norm is; each of several maxima counts fully."""
    if p == 1:
        return difference.sgn()
    if p == 2:
        return (difference / distance).masked_fill(distance == 0, 0)
    if math.isinf(p):
        return difference.sgn() * (difference.abs() == distance)
    if p < 1:
        power = difference.sgn() * (difference.abs() ** (p - 1)).masked_fill(difference == 0, 0)
    else:
        power = difference.sgn() * difference.abs() ** (p - 1)
    return (power / distance ** (p - 1)).masked_fill(distance == 0, 0)


def _pair_gradient(grad: Tensor, x1: Any, x2: Any, result: Tensor, p: float) -> Any:
    """The gradient of every difference between a row of `x1` and a row of `x2`."""
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    if p == 0:
        return difference * 0
    return grad.unsqueeze(-1) * _direction(difference, result.unsqueeze(-1), p)


def _cdist_gradients(grads: Any, needs: Any, x1: Any, x2: Any, result: Tensor, p: float) -> list[Any]:
    if grads[0] is None:
        return [None, None]
    pairs = _pair_gradient(grads[0], x1, x2, result, p)
    return [pairs.sum(-2) if needs[0] else None, -pairs.sum(-3) if needs[1] else None]


@primitive("CdistBackward0", axes=MATRICES, joint=_cdist_gradients)
def _cdist(x1: Array, x2: Array, p: float) -> Array:
    found = arrays.all_distances(x1, x2, p)
    if found is not None:
        return found
    difference = x1[..., :, None, :] - x2[..., None, :, :]
    return contiguous_array(_norm_of(difference, p, (difference.ndim - 1,), False))


def _euclidean_gradient(grad: Tensor, x: Any, other: Tensor, result: Tensor) -> Any:
    """sum over j of grad[i, j] / result[i, j] * (x[i] - other[j])."""
    ratio = (grad / result).masked_fill(result == 0, 0)
    return x * ratio.sum(-1, keepdim=True) - ratio @ other


@primitive(
    "EuclideanDistBackward0",
    axes=MATRICES,
    x1=lambda grad, x1, x2, result: _euclidean_gradient(grad, x1, x2, result),
    x2=lambda grad, x1, x2, result: _euclidean_gradient(grad.mT, x2, x1, result.mT),
)
def _euclidean_dist(x1: Array, x2: Array) -> Array:
    # |a|^2 + |b|^2 - 2 a.b as one product of [-2 a, |a|^2, 1] and [b, 1, |b|^2], which rounds as PyTorch's does.
    first, second = ((each * each).sum(-1, keepdims=True) for each in (x1, x2))
    left = np.concatenate([x1 * -2, first, np.ones_like(first)], -1)
    right = np.concatenate([x2, np.ones_like(second), second], -1)
    return np.sqrt(np.maximum(arrays.matmul(left, right.swapaxes(-1, -2)), 0))


_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def _check_real(name: str, word: str, x: Tensor) -> None:
    if x._kind.dtype.category != FLOAT:
        raise RuntimeError(f"{name} only supports floating-point dtypes, {word} got: {LEGACY_NAMES[x._kind.dtype]}")


def _refuse_half(name: str, x: Tensor) -> None:
    if x._kind.dtype.itemsize == 2:
        raise NotImplementedError(f'"{name}" not implemented for {LEGACY_NAMES[x._kind.dtype]!r}')


@public(method=False, autocast=FULL)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = _MODES[0]) -> Tensor:
    """The `p`-norm distances between every row of `x1` and every row of `x2`."""
    for word, each in (("X1", x1), ("X2", x2)):
        if each._array.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {word} got: {each._array.ndim}D")
    columns = x1._array.shape[-1], x2._array.shape[-1]
    if columns[0] != columns[1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {columns[0]} X2: {columns[1]}")
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode: it must be one of {_MODES}")
    _check_real("cdist", "X1", x1)
    _check_real("cdist", "X2", x2)
    if not p >= 0:
        raise RuntimeError(f"cdist only supports non-negative p values, but p is {p}")
    if x1._kind.dtype is not x2._kind.dtype:
        raise RuntimeError(
            f"expected scalar type {LEGACY_NAMES[x1._kind.dtype]} but found {LEGACY_NAMES[x2._kind.dtype]}"
        )
    _refuse_half("cdist", x1)
    batch = batch_shape("cdist", x1, x2)
    rows = x1._array.shape[-2], x2._array.shape[-2]
    many = compute_mode == _MODES[1] or (compute_mode == _MODES[0] and max(rows) > _MANY)
    if p == 2 and many and min(*rows, columns[0], math.prod(batch)) > 0:
        first, second = (_flat_batch(each, batch) for each in (x1, x2))
        return _euclidean_dist(first, second).view(*batch, *rows)
    return _cdist(x1, x2, float(p))


def _flat_batch(x: Tensor, batch: tuple[int, ...]) -> Tensor:
    """`x` broadcast over `batch`, with the batch dimensions as one."""
    count = math.prod(batch)
    if count == 1:
        return x
    sizes = x._array.shape[-2:]
    return x.expand(*batch, *sizes).contiguous().view(count, *sizes)


def _pairs(count: int) -> tuple[Any, Any]:
    return np.triu_indices(count, 1)


def _pdist_gradient(grad: Tensor, self: Tensor, p: float, result: Tensor) -> Tensor:
    first, second = (constant_beside(each, self) for each in _pairs(self._array.shape[0]))
    if p == 0 or result._array.size == 0:
        return self * 0
    each = grad.unsqueeze(-1) * _direction(self[first] - self[second], result.unsqueeze(-1), p)
    return (self * 0).index_add(0, first, each).index_add(0, second, -each)


@primitive(
    "PdistBackward0",
    self=_pdist_gradient,
    shape=lambda self, p: np.empty_like(self, shape=(self.shape[0] * (self.shape[0] - 1) // 2,)),
)
def _pdist(self: Array, p: float) -> Array:
    found = arrays.distances_of_pairs(self, p)
    if found is not None:
        return found
    first, second = (beside(each, self) for each in _pairs(self.shape[0]))
    return _norm_of(self[first] - self[second], p, (1,), False)


@public("nn.functional.pdist", method=False, autocast=on(cuda=FULL))
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The `p`-norm distances between every two rows of `input`."""
    if input._array.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input._array.ndim}D")
    if input._kind.dtype.category != FLOAT:
        raise RuntimeError(f"pdist only supports floating-point dtypes, got: {LEGACY_NAMES[input._kind.dtype]}")
    if not p >= 0:
        raise RuntimeError(f"pdist only supports non-negative p values, but p is {p}")
    _refuse_half("pdist", input)
    return _pdist(input, float(p))


# ----- pairs of vectors ---------------------------------------------------------------------------------------------


@primitive("NormBackward1", axes=Along("dim"), self=_norm_gradient)
def _norm_along(self: Array, ord: float, dim: tuple[int, ...], keepdim: bool) -> Array:
    return _norm_of(self, ord, dim, keepdim)


@primitive("AddBackward1", axes=ELEMENTS, self=lambda grad: grad)
def _shifted(self: Array, other: float) -> Array:
    return as_array(self + self.dtype.type(other))


@public("nn.functional.pairwise_distance", method=False)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The `p`-norm of x1 - x2 + eps along the last dimension."""
    shifted = _shifted(as_floating(x1 - x2), eps)
    if shifted._array.ndim == 0:
        raise RuntimeError("pairwise_distance: x1 and x2 must have at least one dimension")
    return _norm_along(in_full(shifted), float(p), (shifted._array.ndim - 1,), keepdim)


@public("nn.functional.cosine_similarity", method=False, autocast=on(cuda=FULL))
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; lengths below `eps` count as `eps`."""
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps}")
    common = result_type_of(x1, x2)
    if common.category != FLOAT:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {LEGACY_NAMES[common]}")
    shape = x1._array.shape
    if x2._array.shape != shape:
        try:
            shape = joint_shape(shape, x2._array.shape)
        except ValueError:
            raise shape_error("cosine_similarity", x1, x2) from None
    if x1._kind is not x2._kind or x1._array.shape != x2._array.shape:
        x1, x2 = [_expanded(each, common, shape) for each in (x1, x2)]
    return _cosine(x1, x2, dim, eps)


def _expanded(x: Any, common: Any, shape: tuple[int, ...]) -> Any:
    """`x` in a dtype and a shape."""
    if x._kind.dtype is not common:
        x = x.to(common)
    return x if x._array.shape == shape else x.expand(shape)


@composite("cosine_similarity")
def _cosine(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    return (_unit(x1, dim, eps) * _unit(x2, dim, eps)).sum(dim)


def _unit(x: Tensor, dim: int, eps: float) -> Tensor:
    """`x` divided by the length of its vectors, which is at least `eps`."""
    return x / _at_least(vector_norm(x, 2, dim, True), eps)


@primitive("CloneBackward0", axes=ELEMENTS, self=lambda grad: grad)
def _at_least(self: Array, least: float) -> Array:
    """The bound does not stop the gradient."""
    return as_array(np.maximum(self, self.dtype.type(least)))


@public("nn.functional.normalize", function=False, method=False, autocast=on(cuda=FULL))
def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """`input` divided by its `p`-norms along `dim`, so that they become 1; norms below `eps` count as `eps`."""
    size = vector_norm(input, p, dim, True)
    result = input / size.clamp_min(eps)
    if out is None:
        return result
    from ..._dispatch.changes.out import store

    return store(result, out)
