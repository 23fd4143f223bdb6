"""Sums and softmax of sparse tensors, along dimensions or over all elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.arrays.sparse import (
    COO,
    CooArray,
    accumulating,
    coalesced_array,
    flat_indices,
    group_starts,
    positions_in,
    rows_of,
    values_at,
)
from ..._core.backend import as_array
from ..._core.dtype import FLOAT, INTEGER, int64
from ..._core.sparse import SparseTensor, dense_tensor
from ..._core.tensor import Tensor
from ..._dispatch.dispatch import Array
from ..._dispatch.public.registry import function_named, public
from ..create.constants import as_dtype
from ..shape.view import wrap_dim
from .dispatch import about_sparse, implements, sparse_primitive
from .tensors import _values_of, _with_values, as_coo, coalesce


def _total(array: Any) -> Any:
    values = array.values
    return as_array(accumulating(values).sum(dtype=accumulating(values).dtype)).astype(values.dtype)


@sparse_primitive("SumBackward0", self=lambda grad, self_sym_sizes: grad.expand(self_sym_sizes))
def _sum_all(self: Array) -> Array:
    return _total(self)


def _sum_gradient(grad: Tensor, self: Tensor, dims: tuple[int, ...]) -> Any:
    return _sum_backward(grad, self, dims)


def _total_gradient(grad: Tensor, self: Tensor) -> Any:
    return _sum_backward(grad, self, tuple(range(self.ndim)))


def _sum_backward_gradient(grad: Tensor, dims: tuple[int, ...]) -> Any:
    return _sum_dims(grad, dims)


@sparse_primitive("SparseSumBackward0", self=_total_gradient)
def _sum_all_masked(self: Array) -> Array:
    return _total(self)


@sparse_primitive("SparseSumBackward0", self=_sum_gradient)
def _sum_dims(self: Array, dims: tuple[int, ...]) -> Array:
    sparse = self.sparse_dim
    values = accumulating(self.values)
    dense = tuple(dim - sparse + 1 for dim in dims if dim >= sparse)
    if dense:
        values = values.sum(axis=dense, dtype=values.dtype)
    kept = [dim for dim in range(sparse) if dim not in dims]
    shape = tuple(length for dim, length in enumerate(self.shape) if dim not in dims)
    if not kept:
        return values.sum(axis=0, dtype=values.dtype).astype(self.dtype, copy=False)
    summed = CooArray(rows_of(self.indices, kept), values, shape, self.coalesced and len(kept) == sparse)
    summed = coalesced_array(summed)
    return summed.with_values(summed.values.astype(self.dtype, copy=False))


@sparse_primitive("SparseSumBackward0", self=_sum_backward_gradient)
def _sum_backward(self: Array, like: Array, dims: tuple[int, ...]) -> Array:
    """The gradient of a sum along `dims` at the places of what was summed."""
    places = coalesced_array(like)
    sparse = places.sparse_dim
    kept = [dim for dim in range(sparse) if dim not in dims]
    shape = tuple(length for dim, length in enumerate(places.shape) if dim not in dims)
    values = values_at(self, CooArray(rows_of(places.indices, kept), np.empty((places.nnz, 0)), shape))
    for dim in sorted(dims):
        if dim >= sparse:
            values = np.expand_dims(values, dim - sparse + 1)
    return CooArray(places.indices, np.broadcast_to(values, places.values.shape).copy(), places.shape, True)


def _as_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    dims = tuple(wrap_dim(int(each), ndim) for each in (dim if isinstance(dim, (tuple, list)) else (dim,)))
    if len(set(dims)) != len(dims):
        raise RuntimeError(
            f"dim {next(each for each in dims if dims.count(each) > 1)} appears multiple times in the list of dims"
        )
    return dims


def _prepared(input: Any, dtype: Any) -> Any:
    if dtype is not None:
        return input.to(as_dtype(dtype, "sum"))
    return input.to(int64) if input.dtype.category <= INTEGER else input


@public("sparse.sum", name="_sparse_sum", method=False)
@about_sparse
def sparse_sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all elements, or along `dim`: a sparse tensor as long as a sparse dimension is left."""
    if not isinstance(input, SparseTensor):
        raise NotImplementedError(
            "Could not run 'aten::_sparse_sum' with arguments from the 'CPU' backend: it is for sparse tensors"
        )
    given = input if dtype is None else input.to(as_dtype(dtype, "sum"))
    if dim is None:
        return _sum_all_masked(given) if given.layout is COO else _sum_all(given)
    if given.layout is not COO:
        raise NotImplementedError(
            f"sparse.sum along a dimension of a tensor of layout {given.layout}. Convert it with .to_sparse_coo()"
        )
    dims = _as_dims(dim, given._array.ndim)
    return _sum_dims(given, dims) if dims else given


@implements("sum")
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    given = _prepared(input, dtype)
    if dim is None:
        return _sum_all(given)
    if keepdim:
        raise NotImplementedError("sum of a sparse tensor with keepdim=True is not implemented")
    return sparse_sum(given, dim)


@implements("norm")
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None) -> Any:
    if dim not in (None, (), []) or keepdim or dtype is not None:
        raise RuntimeError(
            "Only full reductions of a sparse tensor are implemented by norm: dim, keepdim and dtype are not"
        )
    if out is not None:
        raise NotImplementedError("out= of norm of a sparse tensor is not implemented")
    return _values_of(coalesce(input) if input.layout is COO else input).norm(2 if p in (None, "fro") else p)


@implements("any")
def any(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    if dim is not None or keepdim:
        raise NotImplementedError("any along a dimension of a sparse tensor is not implemented")
    return dense_tensor(as_array(coalesced_array(as_coo(input._array)).values.any()), input)


# ----- softmax -----------------------------------------------------------------------------------------------------


def _softmax(input: Tensor, dim: int, dtype: Any, logarithm: bool) -> Tensor:
    name = "log_softmax" if logarithm else "softmax"
    if input.layout is not COO:
        raise NotImplementedError(
            f"sparse.{name}: it is for sparse tensors by coordinates, not of layout {input.layout}"
        )
    if dtype is not None:
        input = input.to(as_dtype(dtype, name))
    if input.dtype.category < FLOAT:
        raise NotImplementedError(f'"{name}" not implemented for {input.dtype}')
    dim = wrap_dim(dim, input._array.ndim)
    given = coalesce(input)
    array = given._array
    values = _values_of(given)
    if dim >= array.sparse_dim:
        place = dim - array.sparse_dim + 1
        return _with_values(given.detach(), function_named("", name)(values, place))
    if not array.nnz:
        return _with_values(given.detach(), values * 1)
    others = [each for each in range(array.sparse_dim) if each != dim]
    flat = flat_indices(rows_of(array.indices, others), tuple(array.shape[each] for each in others))
    order = np.argsort(flat, kind="stable")
    starts = group_starts(flat[order])
    group = positions_in(flat[order][starts], flat)[0]
    largest = np.maximum.reduceat(accumulating(array.values)[order], starts, axis=0)
    largest = np.where(np.isfinite(largest), largest, np.zeros((), largest.dtype, like=largest))
    groups = dense_tensor(group.astype(np.int64), given)
    shifted = values - dense_tensor(largest[group].astype(array.dtype), given)
    exponents = shifted.exp()
    totals = exponents.new_zeros(largest.shape).index_add(0, groups, exponents)
    if logarithm:
        return _with_values(given.detach(), shifted - totals.log().index_select(0, groups))
    return _with_values(given.detach(), exponents / totals.index_select(0, groups))


@public("sparse.softmax", name="_sparse_softmax", method=False)
@about_sparse
def sparse_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Softmax along `dim` of the elements that are named: the others count as minus infinity."""
    return _softmax(input, dim, dtype, False)


@public("sparse.log_softmax", name="_sparse_log_softmax", method=False)
@about_sparse
def sparse_log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`."""
    return _softmax(input, dim, dtype, True)
