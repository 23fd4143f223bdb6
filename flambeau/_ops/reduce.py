"""Reductions: sums, means, extremes, norms, over all elements or along dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.dtype import BOOL, FLOAT, INTEGER, bfloat16, float16, int64
from .._core.tensor import Tensor
from .dispatch import Array, primitive
from .registry import public
from .view import wrap_dim

Dims = Any
"""None, an int or a sequence of ints."""


def reduced_dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The dimensions to reduce, counted from the front; None and () mean all."""
    if dim is None or dim == () or dim == []:
        return tuple(range(ndim))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    wrapped = tuple([wrap_dim(each, ndim) for each in dims])
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"dim {max(set(wrapped), key=wrapped.count)} appears multiple times in the list of dims")
    return wrapped if ndim else ()


def expand_reduced(grad: Tensor, shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """The gradient of a reduction's result, spread over the shape that was reduced."""
    if not keepdim and dim and shape:
        kept = [1 if position in dim else size for position, size in enumerate(shape)]
        grad = grad.reshape(kept)  # type: ignore[attr-defined]
    return grad.expand(shape)  # type: ignore[attr-defined,no-any-return]


def _sum_of(array: Any, dim: tuple[int, ...] | None, keepdim: bool, dtype: Any) -> Any:
    if array.dtype.itemsize == 2 and dtype.category == FLOAT:  # half precision is summed in float32
        return np.add.reduce(array.astype(np.float32), axis=dim, keepdims=keepdim).astype(dtype.numpy)
    if array.dtype is dtype.numpy and not keepdim:
        return np.add.reduce(array, dim)
    return np.add.reduce(array, axis=dim, dtype=dtype.numpy, keepdims=keepdim)


def sum_dtype(tensor: Tensor, dtype: Any) -> Any:
    """The dtype of a sum or product: integers and bool add up in int64."""
    if dtype is not None:
        return dtype
    own = tensor._kind.dtype
    return int64 if own.category <= INTEGER else own


@primitive("SumBackward0", self=lambda grad, self_sym_sizes: grad.expand(self_sym_sizes))
def _sum_all(self: Array, dtype: Any) -> Array:
    return _sum_of(self, None, False, dtype)


@primitive(
    "SumBackward1",
    self=lambda grad, self_sym_sizes, dim, keepdim: expand_reduced(grad, self_sym_sizes, dim, keepdim),
)
def _sum_dim(self: Array, dim: tuple[int, ...], keepdim: bool, dtype: Any) -> Array:
    return _sum_of(self, dim, keepdim, dtype)


@public(out=True)
def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum of the elements, of all or along `dim`.

    >>> flambeau.tensor([[1, 2], [3, 4]]).sum(0)
    tensor([4, 6])
    """
    result = sum_dtype(input, dtype)
    if dim is None and not keepdim:
        return _sum_all(input, result)  # type: ignore[no-any-return]
    return _sum_dim(input, reduced_dims(dim, input._array.ndim), keepdim, result)  # type: ignore[no-any-return]
