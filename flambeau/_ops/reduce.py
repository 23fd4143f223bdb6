"""Reductions: sums, means, products, variances, norms, counts, over all elements or along dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core.dtype import FLOAT, INTEGER, LEGACY_NAMES, int64, uint8
from .._core.dtype import dtype as DType
from .._core.tensor import Tensor
from .binary import conj
from .dispatch import Array, primitive
from .registry import public
from .view import wrap_dim

Dims = Any
"""None, an int or a sequence of ints."""


def reduced_dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The dimensions to reduce, counted from the front; None and () mean all."""
    if dim is None:
        return tuple(range(ndim))
    if type(dim) is int:
        return (wrap_dim(dim, ndim),) if ndim else _check_scalar_dims((dim,))
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim.__index__(),)
    if not dims:
        return tuple(range(ndim))
    wrapped = tuple([wrap_dim(each, ndim) for each in dims])
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"dim {max(set(wrapped), key=wrapped.count)} appears multiple times in the list of dims")
    return wrapped if ndim else ()


def _check_scalar_dims(dims: tuple[int, ...]) -> tuple[int, ...]:
    for dim in dims:
        wrap_dim(dim, 0)
    return ()


def expand_reduced(grad: Tensor, shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """The gradient of a reduction's result, spread over the shape that was reduced."""
    return restore_dims(grad, len(shape), dim, keepdim).expand(shape)  # type: ignore[no-any-return]


def restore_dims(tensor: Tensor, ndim: int, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """A reduction's result with its reduced dimensions back, each of size 1."""
    if keepdim or not dim:
        return tensor
    shape = list(tensor._array.shape)
    for position in sorted(dim):
        shape.insert(position, 1)
    return tensor.reshape(shape)  # type: ignore[no-any-return]


def needs_floats(name: str, dtype: DType) -> None:
    """Refuse integers where PyTorch wants the caller to choose a float type."""
    if dtype.category < FLOAT:
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {LEGACY_NAMES[dtype]}. Convert first, as in x.float()"
        )


def in_single(array: Any) -> Any:
    """Half precision as float32, in which its reductions run; others as they are."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind in "fV" else array


# ----- sum, mean, prod --------------------------------------------------------------------------------------------


def _sum_of(array: Any, dim: tuple[int, ...] | None, keepdim: bool, dtype: DType) -> Any:
    if array.dtype is dtype.numpy and dtype.itemsize > 2:
        return np.add.reduce(array, dim) if not keepdim else np.add.reduce(array, axis=dim, keepdims=True)
    if dtype.category == FLOAT and dtype.itemsize == 2:
        wide = np.float64 if array.dtype.itemsize == 8 else np.float32
        return np.asarray(np.add.reduce(array.astype(wide), axis=dim, keepdims=keepdim)).astype(dtype.numpy)
    return np.add.reduce(array.astype(dtype.numpy), axis=dim, dtype=dtype.numpy, keepdims=keepdim)


def sum_dtype(tensor: Tensor, dtype: Any) -> DType:
    """The dtype of a sum or product: integers and bool add up in int64."""
    if dtype is not None:
        return dtype  # type: ignore[no-any-return]
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


@public(out=True)
def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum with NaN counted as zero."""
    if input._kind.dtype.is_complex:
        raise RuntimeError("nansum does not support complex inputs")
    if input._kind.dtype.category < FLOAT:
        return sum(input, dim, keepdim, dtype=dtype)  # type: ignore[no-any-return]
    return sum(input.masked_fill(input.isnan(), 0), dim, keepdim, dtype=dtype)  # type: ignore[no-any-return]


def _mean_of(array: Any, dim: tuple[int, ...] | None, keepdim: bool, dtype: DType) -> Any:
    count = array.size if dim is None else math.prod(array.shape[each] for each in dim)
    wide = array.astype(np.float32) if dtype.itemsize == 2 else array.astype(dtype.numpy, copy=False)
    total = np.add.reduce(wide, axis=dim, keepdims=keepdim)
    return np.asarray(total / np.asarray(count, wide.real.dtype)).astype(dtype.numpy, copy=False)


@primitive("MeanBackward0", self=lambda grad, self_sym_sizes, self_sym_numel: grad.expand(self_sym_sizes) / self_sym_numel)
def _mean_all(self: Array, dtype: Any) -> Array:
    return _mean_of(self, None, False, dtype)


def _mean_gradient(grad: Tensor, self_sym_sizes: Any, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    count = math.prod(self_sym_sizes[each] for each in dim)
    return expand_reduced(grad, self_sym_sizes, dim, keepdim) / count


@primitive("MeanBackward1", self=_mean_gradient)
def _mean_dim(self: Array, dim: tuple[int, ...], keepdim: bool, dtype: Any) -> Array:
    return _mean_of(self, dim, keepdim, dtype)


@public(out=True)
def mean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Arithmetic mean, of all elements or along `dim`.

    >>> flambeau.tensor([1.0, 3.0]).mean()
    tensor(2.)
    """
    result = input._kind.dtype if dtype is None else dtype
    if result.category < FLOAT:
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {LEGACY_NAMES[result]}. Convert first, as in x.float().mean()"
        )
    if dim is None and not keepdim:
        return _mean_all(input, result)  # type: ignore[no-any-return]
    return _mean_dim(input, reduced_dims(dim, input._array.ndim), keepdim, result)  # type: ignore[no-any-return]


@public(out=True)
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Mean of the elements that are not NaN."""
    needs_floats("nanmean", input._kind.dtype if dtype is None else dtype)
    counted = sum(input.isnan().logical_not(), dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / counted  # type: ignore[no-any-return]


def _prod_of(array: Any, dim: int | None, keepdim: bool, dtype: DType) -> Any:
    wide = array.astype(np.float32 if dtype.itemsize == 2 and dtype.category == FLOAT else dtype.numpy)
    return np.asarray(np.multiply.reduce(wide, axis=dim, keepdims=keepdim)).astype(dtype.numpy, copy=False)


def _product_of_others(tensor: Tensor, dim: int) -> Tensor:
    """For each element the product of all the others along `dim`; right where elements are zero, too."""
    size = tensor.shape[dim]
    if size == 0:
        return tensor
    ones = tensor.narrow(dim, 0, 1) * 0 + 1
    before = _cat([ones, tensor.narrow(dim, 0, size - 1)], dim).cumprod(dim)
    after = _cat([ones, tensor.flip(dim).narrow(dim, 0, size - 1)], dim).cumprod(dim).flip(dim)
    return before * after  # type: ignore[no-any-return]


def _cat(tensors: list[Tensor], dim: int) -> Any:
    from .join import cat

    return cat(tensors, dim)


def _prod_gradient(grad: Tensor, self: Tensor) -> Tensor:
    return grad * conj(_product_of_others(self.reshape(-1), 0)).reshape(self.shape)  # type: ignore[no-any-return]


@primitive("ProdBackward0", self=_prod_gradient)
def _prod_all(self: Array, dtype: Any) -> Array:
    return _prod_of(self, None, False, dtype)


def _prod_dim_gradient(grad: Tensor, self: Tensor, dim: int, keepdim: bool) -> Tensor:
    if self.ndim == 0:
        return grad
    spread = restore_dims(grad, self.ndim, (dim,), keepdim)
    return spread * conj(_product_of_others(self, dim))


@primitive("ProdBackward1", self=_prod_dim_gradient)
def _prod_dim(self: Array, dim: int, keepdim: bool, dtype: Any) -> Array:
    return _prod_of(self, dim if self.ndim else None, keepdim, dtype)


@public(out=True)
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Product of the elements, of all or along `dim`."""
    result = sum_dtype(input, dtype)
    if input._kind.dtype is not result and result.category >= FLOAT:
        input = input.to(result)
    if dim is None:
        return _prod_all(input, result)  # type: ignore[no-any-return]
    return _prod_dim(input, wrap_dim(dim, input._array.ndim), keepdim, result)  # type: ignore[no-any-return]


# ----- variance ---------------------------------------------------------------------------------------------------


def _variance(array: Any, dim: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    wide = in_single(array)
    count = math.prod(array.shape[each] for each in dim)
    center = np.add.reduce(wide, axis=dim, keepdims=True) / np.asarray(count, wide.real.dtype)
    apart = wide - center
    squares = (apart * np.conjugate(apart)).real
    total = np.add.reduce(squares, axis=dim, keepdims=keepdim)
    return total / np.asarray(max(count - correction, 0), squares.dtype)


def _var_gradient(grad: Tensor, self: Tensor, dim: tuple[int, ...], correction: float, keepdim: bool) -> Tensor:
    count = math.prod(self.shape[each] for each in dim)
    scale = _ratio(2.0, count - correction)
    return restore_dims(grad, self.ndim, dim, keepdim) * scale * (self - self.mean(dim, keepdim=True))


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else math.nan


@primitive("VarBackward0", self=_var_gradient)
def _var(self: Array, dim: tuple[int, ...], correction: float, keepdim: bool) -> Array:
    return np.asarray(_variance(self, dim, correction, keepdim)).astype(self.real.dtype, copy=False)


def _std_gradient(
    grad: Tensor, self: Tensor, result: Tensor, dim: tuple[int, ...], correction: float, keepdim: bool
) -> Tensor:
    scaled = (grad / (result * 2)).masked_fill(result == 0, 0)
    return _var_gradient(scaled, self, dim, correction, keepdim)


@primitive("StdBackward0", self=_std_gradient)
def _std(self: Array, dim: tuple[int, ...], correction: float, keepdim: bool) -> Array:
    return np.asarray(np.sqrt(_variance(self, dim, correction, keepdim))).astype(self.real.dtype, copy=False)


def _variance_arguments(name: str, input: Tensor, dim: Dims, unbiased: Any, correction: Any) -> tuple[tuple[int, ...], float]:
    if input._kind.dtype.category < FLOAT:
        raise RuntimeError(f"{name} and its kin only support floating point and complex dtypes, not {input.dtype}")
    if isinstance(dim, bool):  # var(unbiased)
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError(f"{name}(): give unbiased or correction, not both")
    degrees = (1.0 if unbiased is None or unbiased else 0.0) if correction is None else correction
    return reduced_dims(dim, input._array.ndim), degrees


@public(out=True)
def var(input: Tensor, dim: Dims = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Tensor:
    """Variance; `correction` is subtracted from the number of elements (1 unless told)."""
    dims, degrees = _variance_arguments("var", input, dim, unbiased, correction)
    return _var(input, dims, degrees, keepdim)  # type: ignore[no-any-return]


@public(out=True)
def std(input: Tensor, dim: Dims = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Tensor:
    """Standard deviation; `correction` as in `var`."""
    dims, degrees = _variance_arguments("std", input, dim, unbiased, correction)
    return _std(input, dims, degrees, keepdim)  # type: ignore[no-any-return]


@public(method=False)
def var_mean(
    input: Tensor, dim: Dims = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> tuple[Tensor, Tensor]:
    """Variance and mean."""
    dims, degrees = _variance_arguments("var_mean", input, dim, unbiased, correction)
    return _var(input, dims, degrees, keepdim), mean(input, dims, keepdim)


@public(method=False)
def std_mean(
    input: Tensor, dim: Dims = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean."""
    dims, degrees = _variance_arguments("std_mean", input, dim, unbiased, correction)
    return _std(input, dims, degrees, keepdim), mean(input, dims, keepdim)


# ----- truth and counts -------------------------------------------------------------------------------------------


@primitive(None)
def _all(self: Array, dim: tuple[int, ...] | None, keepdim: bool) -> Array:
    return np.logical_and.reduce(self.astype(bool), axis=dim, keepdims=keepdim)


@primitive(None)
def _any(self: Array, dim: tuple[int, ...] | None, keepdim: bool) -> Array:
    return np.logical_or.reduce(self.astype(bool), axis=dim, keepdims=keepdim)


def _truth(op: Any, input: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    result: Tensor = op(input, reduced_dims(dim, input._array.ndim), keepdim)
    return result.to(uint8) if input._kind.dtype is uint8 else result  # type: ignore[no-any-return]


@public(out=True)
def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether all elements are true, altogether or along `dim`."""
    return _truth(_all, input, dim, keepdim)


@public(out=True)
def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether any element is true, altogether or along `dim`."""
    return _truth(_any, input, dim, keepdim)


@primitive(None)
def _count_nonzero(self: Array, dim: tuple[int, ...]) -> Array:
    return np.add.reduce((self != 0).astype(np.int64), axis=dim)


@public()
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """How many elements are not zero."""
    return _count_nonzero(input, reduced_dims(dim, input._array.ndim))  # type: ignore[no-any-return]
