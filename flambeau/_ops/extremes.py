"""Largest and smallest elements, and where they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.dtype import COMPLEX, LEGACY_NAMES
from .._core.tensor import Tensor
from .dispatch import Array, primitive
from .reduce import Dims, reduced_dims, restore_dims
from .registry import public
from .return_types import return_type
from .view import wrap_dim


def value_selecting_gradient(grad: Tensor, indices: Tensor, self_sym_sizes: Any, dim: int, keepdim: bool) -> Tensor:
    """The gradient of a result that was picked along `dim`: it goes to the picked elements."""
    if not self_sym_sizes:
        return grad
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(self_sym_sizes).scatter_add(dim, indices, grad)  # type: ignore[no-any-return]


def evenly_distributed(grad: Tensor, self: Tensor, result: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """The gradient of an extreme, shared evenly by all elements that attain it."""
    result = restore_dims(result, self.ndim, dim, keepdim)
    grad = restore_dims(grad, self.ndim, dim, keepdim)
    attained = (self == result).logical_or(self.isnan().logical_and(result.isnan()))
    return attained * (grad / attained.sum(dim, keepdim=True))


def _check_order(name: str, input: Tensor) -> None:
    if input._kind.dtype.category == COMPLEX:
        raise RuntimeError(f'"{name}" not implemented for {LEGACY_NAMES[input.dtype]!r}')


def _nonempty(name: str, input: Tensor, dim: int | None = None) -> None:
    if dim is None:
        if input._array.size == 0:
            raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.")
    elif input._array.ndim and input._array.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def _position(array: Any, dim: int, largest: bool) -> Any:
    """Where the extreme is along `dim`; the first NaN wins, as in PyTorch."""
    if array.dtype == bool:
        array = array.astype(np.uint8)
    found = np.argmax(array, axis=dim) if largest else np.argmin(array, axis=dim)
    return np.asarray(found, np.int64)


def _extreme_along(array: Any, dim: int, keepdim: bool, largest: bool) -> tuple[Any, Any]:
    if array.ndim == 0:
        return array.copy(), np.zeros((), np.int64)
    indices = np.expand_dims(_position(array, dim, largest), dim)
    values = np.take_along_axis(array, indices, dim)
    if not keepdim:
        values, indices = np.squeeze(values, dim), np.squeeze(indices, dim)
    return np.ascontiguousarray(values).reshape(values.shape), np.ascontiguousarray(indices).reshape(indices.shape)


def _picked(grad: Tensor, result1: Tensor, self_sym_sizes: Any, dim: int, keepdim: bool) -> Tensor:
    return value_selecting_gradient(grad, result1, self_sym_sizes, dim, keepdim)


def _whole_extreme_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return evenly_distributed(grad, self, result, tuple(range(self.ndim)), False)


@primitive("MaxBackward0", self=_picked)
def _max_dim(self: Array, dim: int, keepdim: bool) -> Any:
    return _extreme_along(self, dim, keepdim, True)


@primitive("MinBackward0", self=_picked)
def _min_dim(self: Array, dim: int, keepdim: bool) -> Any:
    return _extreme_along(self, dim, keepdim, False)


@primitive("MaxBackward1", self=_whole_extreme_gradient)
def _max_all(self: Array) -> Array:
    return np.maximum.reduce(self, axis=None)


@primitive("MinBackward1", self=_whole_extreme_gradient)
def _min_all(self: Array) -> Array:
    return np.minimum.reduce(self, axis=None)


def _extreme(name: str, whole: Any, along: Any, pairwise: str, input: Tensor, dim: Any, keepdim: bool) -> Any:
    _check_order(name, input)
    if dim is None:
        _nonempty(name, input)
        return whole(input)
    if isinstance(dim, Tensor):
        return getattr(input, pairwise)(dim)
    dim = wrap_dim(dim, input._array.ndim)
    _nonempty(name, input, dim)
    return return_type(name, ("values", "indices"))(*along(input, dim, keepdim))


@public(out=True)
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The largest element; with `dim`, values and indices along it; with a second tensor, the elementwise maximum."""
    return _extreme("max", _max_all, _max_dim, "maximum", input, dim if other is None else other, keepdim)


@public(out=True)
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The smallest element; with `dim`, values and indices along it; with a second tensor, the elementwise minimum."""
    return _extreme("min", _min_all, _min_dim, "minimum", input, dim if other is None else other, keepdim)


@primitive("AmaxBackward0", self=evenly_distributed)
def _amax(self: Array, dim: tuple[int, ...], keepdim: bool) -> Array:
    return np.maximum.reduce(self, axis=dim, keepdims=keepdim)


@primitive("AminBackward0", self=evenly_distributed)
def _amin(self: Array, dim: tuple[int, ...], keepdim: bool) -> Array:
    return np.minimum.reduce(self, axis=dim, keepdims=keepdim)


def _check_reduced(name: str, input: Tensor, dims: tuple[int, ...]) -> None:
    _check_order(name, input)
    for dim in dims:
        _nonempty(name, input, dim)


@public(out=True)
def amax(input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """The largest elements along `dim`; equal ones share the gradient."""
    dims = reduced_dims(dim, input._array.ndim)
    _check_reduced("amax", input, dims)
    return _amax(input, dims, keepdim)  # type: ignore[no-any-return]


@public(out=True)
def amin(input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """The smallest elements along `dim`; equal ones share the gradient."""
    dims = reduced_dims(dim, input._array.ndim)
    _check_reduced("amin", input, dims)
    return _amin(input, dims, keepdim)  # type: ignore[no-any-return]


@public(out=True)
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The smallest and the largest element."""
    _check_order("aminmax", input)
    if dim is None:
        if input._array.size == 0:
            raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
        dims = tuple(range(input.ndim))
    else:
        dims = reduced_dims(dim, input._array.ndim)
        _check_reduced("aminmax", input, dims)
    return return_type("aminmax", ("min", "max"))(_amin(input, dims, keepdim), _amax(input, dims, keepdim))


@primitive(None)
def _arg_extreme(self: Array, dim: int, keepdim: bool, largest: bool) -> Array:
    if self.ndim == 0:
        return np.zeros((), np.int64)
    found = _position(self, dim, largest)
    return np.expand_dims(found, dim) if keepdim else found


def _arg(name: str, input: Tensor, dim: int | None, keepdim: bool, largest: bool) -> Tensor:
    _check_order(name, input)
    if dim is None:
        _nonempty(name, input)
        flat: Tensor = _arg_extreme(input.reshape(-1), 0, False, largest)
        return flat.reshape((1,) * input.ndim) if keepdim else flat  # type: ignore[no-any-return]
    dim = wrap_dim(dim, input._array.ndim)
    _nonempty(name, input, dim)
    return _arg_extreme(input, dim, keepdim, largest)  # type: ignore[no-any-return]


@public(out=True)
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the largest element."""
    return _arg("argmax", input, dim, keepdim, True)


@public(out=True)
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the smallest element."""
    return _arg("argmin", input, dim, keepdim, False)


