"""Weight normalisation: a weight as direction and length."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.tensor import Tensor
from ..._dispatch.arguments.precision import in_single
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.registry import public
from ..shape.view import wrap_dim


def _others(ndim: int, dim: int) -> list[int]:
    return [each for each in range(ndim) if each != dim]


@public(method=False)
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm of each slice of `v` along `dim`, in a shape that broadcasts with `v`; of all of it if `dim` is -1."""
    if dim == -1:
        return v.norm(pow)
    size = v.shape[dim]
    if dim == 0:
        return v.contiguous().view(size, -1).norm(pow, 1).view(size, *[1] * (v.ndim - 1))
    if dim == v.ndim - 1:
        return v.contiguous().view(-1, size).norm(pow, 0).view(*[1] * (v.ndim - 1), size)
    # In the middle: the dimension goes to the front and the norms back.
    return norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)


def _norms(v: Any, dim: int) -> Any:
    return (v * v).sum(_others(v.ndim, dim), keepdim=True).sqrt()


def _gradient_of_v(grad: Tensor, v: Any, g: Any, dim: int) -> Any:
    norms = _norms(v, dim)
    along = (v * grad).sum(_others(v.ndim, dim), keepdim=True)
    return g / norms * (grad - v * along / (norms * norms))


def _gradient_of_g(grad: Tensor, v: Any, dim: int) -> Any:
    return (v * grad).sum(_others(v.ndim, dim), keepdim=True) / _norms(v, dim)


@primitive("WeightNormInterfaceBackward0", v=_gradient_of_v, g=_gradient_of_g)
@in_single
def _normalised(v: Array, g: Array, dim: int) -> Array:
    axes = tuple(_others(v.ndim, dim))
    return v * (g / np.sqrt(np.sum(v * v, axis=axes, keepdims=True)))


@public(method=False)
def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """The weight of direction `v` and of length `g` in each slice along `dim`."""
    if dim in (0, v.ndim - 1):
        return _normalised(v, g, wrap_dim(dim, v.ndim))
    return v * (g / norm_except_dim(v, 2, dim))
