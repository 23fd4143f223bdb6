"""Vector norms and distances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core.dtype import FLOAT, LEGACY_NAMES
from .._core.tensor import Tensor
from .dispatch import Array, primitive
from .reduce import Dims, in_single, reduced_dims, restore_dims
from .registry import public


def _norm_gradient(grad: Tensor, self: Tensor, result: Tensor, ord: float, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """At zero, and where several elements share the maximum, the sub-gradient of least norm, as in PyTorch."""
    grad = restore_dims(grad, self.ndim, dim, keepdim)
    result = restore_dims(result, self.ndim, dim, keepdim)
    if ord == 0:
        return self * 0
    if ord == 1:
        return self.sgn() * grad  # type: ignore[no-any-return]
    if ord == 2:
        return self * (grad / result).masked_fill(result == 0, 0)
    if math.isinf(ord):
        size = self.abs()
        at_extreme = (size == result).logical_or(result.isnan().logical_and(size.isnan()))
        shared = at_extreme.sum(dim, keepdim=True)
        return self.sgn() * (at_extreme.to(result.dtype) * (grad / shared))  # type: ignore[no-any-return]
    if ord < 1:
        scaled = self.sgn() * (self.abs() ** (ord - 1)).masked_fill(self == 0, 0)
        return scaled * (grad * result ** (1 - ord))  # type: ignore[no-any-return]
    if ord < 2:
        scaled = self.sgn() * self.abs() ** (ord - 1)
        return scaled * (grad / result ** (ord - 1)).masked_fill(result == 0, 0)  # type: ignore[no-any-return]
    scaled = self * self.abs() ** (ord - 2)
    return scaled * (grad / result ** (ord - 1)).masked_fill(result == 0, 0)


@primitive("LinalgVectorNormBackward0", self=_norm_gradient)
def _vector_norm(self: Array, ord: float, dim: tuple[int, ...], keepdim: bool) -> Array:
    size = np.absolute(in_single(self))
    if ord == 2:
        value = np.sqrt(np.add.reduce(size * size, axis=dim, keepdims=keepdim))
    elif ord == 1:
        value = np.add.reduce(size, axis=dim, keepdims=keepdim)
    elif ord == 0:
        value = np.add.reduce((size != 0).astype(size.dtype), axis=dim, keepdims=keepdim)
    elif ord == math.inf:
        value = np.maximum.reduce(size, axis=dim, keepdims=keepdim, initial=0 if size.size == 0 else None)
    elif ord == -math.inf:
        value = np.minimum.reduce(size, axis=dim, keepdims=keepdim)
    else:
        value = np.add.reduce(size**ord, axis=dim, keepdims=keepdim) ** (1 / ord)
    return np.asarray(value).astype(self.real.dtype, copy=False)


@public("linalg.vector_norm", function=False, method=False, out=True)
def vector_norm(x: Tensor, ord: Any = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The `ord`-norm of the elements, of all or along `dim`."""
    if x._kind.dtype.category < FLOAT:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {LEGACY_NAMES[x.dtype]}"
        )
    if not isinstance(ord, (int, float)):
        raise TypeError(f"linalg.vector_norm: ord must be a number, not {type(ord).__name__}")
    if dtype is not None:
        x = x.to(dtype)
    dims = reduced_dims(dim, x._array.ndim)
    if ord < 0 or math.isinf(ord):
        empty = x._array.size == 0 and (dim is None or math.prod(x.shape[each] for each in dims) == 0)
        if empty:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation does not have an identity"
            )
    return _vector_norm(x, float(ord), dims, keepdim)  # type: ignore[no-any-return]


@public(out=True)
def norm(input: Tensor, p: Any = "fro", dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The `p`-norm of the elements; "fro" is the 2-norm.

    >>> flambeau.tensor([3.0, 4.0]).norm()
    tensor(5.)
    """
    if p is None or p == "fro":
        p = 2
    elif p == "nuc":
        return input.svd()[1].sum(-1)  # type: ignore[no-any-return]
    elif isinstance(p, str):
        raise RuntimeError(f"norm(): p must be a number, 'fro' or 'nuc', not {p!r}")
    return vector_norm(input, p, dim, keepdim, dtype=dtype)  # type: ignore[no-any-return]


@public()
def dist(input: Tensor, other: Tensor, p: Any = 2) -> Tensor:
    """The `p`-norm of `input - other`."""
    return norm(input - other, p)  # type: ignore[no-any-return]


@public(inplace=True, out=True)
def renorm(input: Tensor, p: Any, dim: int, maxnorm: float) -> Tensor:
    """Scale the sub-tensors along `dim` whose `p`-norm exceeds `maxnorm` down to it."""
    others = [each for each in range(input.ndim) if each != dim % input.ndim]
    size = norm(input, p, others, True)
    factor = (maxnorm / (size + 1e-7)).masked_fill(size <= maxnorm, 1.0)
    return input * factor


