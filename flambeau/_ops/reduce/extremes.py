"""Largest and smallest elements, and where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.backend import LARGE
from ..._core.dtype import BOOL, COMPLEX, INTEGER, LEGACY_NAMES
from ..._core.tensor import Tensor
from ..._dispatch.arguments.scalar import integer
from ..._dispatch.axes import Along, Whole
from ..._dispatch.changes.exact_out import store_exactly
from ..._dispatch.changes.inplace import check_castable
from ..._dispatch.dispatch import Array, primitive, several
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from ..._dispatch.public.return_types import named, return_type
from ..index.gather import value_selecting_reduction_backward
from ..shape.view import wrap_dim
from .reductions import Dims, kept_shape, no_kernel, reduced, reduced_dims, restore_dims

MAX = return_type("max", ("values", "indices"))
MIN = return_type("min", ("values", "indices"))
AMINMAX = return_type("aminmax", ("min", "max"))

_least: Any = np.minimum.reduce
_largest: Any = np.maximum.reduce


def evenly_distributed(grad: Tensor, self: Tensor, result: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """The gradient of an extreme, shared evenly by all elements that attain it."""
    result = restore_dims(result, dim, keepdim)
    attained = (self == result).logical_or(self.isnan())  # where there is a NaN, it is the extreme
    return _shared(grad, attained, dim, keepdim)


def _shared(grad: Tensor, attained: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    return attained * (restore_dims(grad, dim, keepdim) / attained.sum(dim, keepdim=True))


def _amax_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    # A NaN equals nothing: as in PyTorch, the gradient is NaN where the extreme is.
    return _shared(grad, self == restore_dims(result, dim, keepdim), dim, keepdim)


def check_nonempty(name: str, input: Tensor, dim: int | None = None) -> None:
    """Refuse to look for an element where there is none."""
    array = input._array
    if array.size:
        return
    if dim is None:
        raise (IndexError if name in ("argmax", "argmin") else RuntimeError)(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            f"the 'dim' argument. The input has shape {list(array.shape)}."
        )
    if array.shape[dim] == 0:
        raise IndexError(
            f"{name}(): Expected reduction dim {dim} to have non-zero size: the input has shape {list(array.shape)}."
        )


def _extreme_along(ufunc: Any, array: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """Extremes along `dim` and where the first of each is; the first NaN wins, as in PyTorch."""
    if array.ndim == 0:
        return array.copy(), np.zeros((), np.int64, like=array)
    done = arrays.extremes(array, dim, keepdim, ufunc is np.maximum)
    if done is not None:
        return done
    indices = array.argmax(dim) if ufunc is np.maximum else array.argmin(dim)
    values = ufunc.reduce(array, dim)
    if array.ndim > 2 and not array.flags.c_contiguous:
        values, indices = np.array(values, order="C", like=array), np.array(indices, order="C", like=array)
    if keepdim:
        shape = kept_shape(array.shape, (dim,))
        return values.reshape(shape), indices.reshape(shape)
    return values, indices


def _picked(grad: Tensor, indices: Tensor, self_sym_sizes: Any, dim: int, keepdim: bool) -> Tensor:
    return value_selecting_reduction_backward(grad, indices, self_sym_sizes, dim, keepdim)


def _whole_extreme_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    attained = (self == result).logical_or(self.isnan())
    # Unlike a product with the mask, this leaves zeros beside a gradient that is NaN or infinite, as PyTorch does here.
    return (grad / attained.sum()).masked_fill(attained.logical_not(), 0)


@several("MaxBackward0", axes=Along("dim"), results=("values", "indices"), self=_picked)
def _max_dim(self: Array, dim: int, keepdim: bool) -> Any:
    return _extreme_along(np.maximum, self, dim, keepdim)


@several("MinBackward0", axes=Along("dim"), results=("values", "indices"), self=_picked)
def _min_dim(self: Array, dim: int, keepdim: bool) -> Any:
    return _extreme_along(np.minimum, self, dim, keepdim)


@primitive("MaxBackward1", axes=Whole("amax"), self=_whole_extreme_gradient)
def _max_all(self: Array) -> Array:
    return _largest(self, None, None, np.empty((), self.dtype) if type(self) is np.ndarray else None)


@primitive("MinBackward1", axes=Whole("amin"), self=_whole_extreme_gradient)
def _min_all(self: Array) -> Array:
    return _least(self, None, None, np.empty((), self.dtype) if type(self) is np.ndarray else None)


def _whole_extreme(name: str, op: Any, input: Tensor, out: Tensor | None) -> Tensor:
    if input._kind.dtype.category == COMPLEX:
        raise no_kernel(f"{name}_all", input)
    check_nonempty(name, input)
    result: Tensor = op(input)
    if out is None:
        return result
    check_castable(input._kind.dtype, out._kind.dtype, name)
    return write_out(result.to(out.dtype), out)


def _extreme(name: str, op: Any, kind: Any, input: Tensor, dim: int, keepdim: bool, out: Any) -> Any:
    if input._kind.dtype.category == COMPLEX:
        raise RuntimeError(f"{name}(): does not support complex input")
    dim = wrap_dim(dim, input._array.ndim)
    check_nonempty(name, input, dim)
    result = named(kind, op(input, dim, keepdim))
    return result if out is None else store_exactly(result, out)


@public()
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None, out: Any = None) -> Any:
    """The largest element; with `dim`, values and indices along it; with a second tensor, the elementwise maximum."""
    if type(dim) is int:
        return _extreme("max", _max_dim, MAX, input, dim, keepdim, out)
    if dim is None and other is None:
        if out is None and input._array.size and input._kind.dtype.category != COMPLEX:
            return _max_all(input)
        return _whole_extreme("max", _max_all, input, out)
    second = dim if other is None else other
    if isinstance(second, Tensor) and not (keepdim and _is_dim(second)):
        return _pairwise(input.maximum(second), out)
    return _extreme("max", _max_dim, MAX, input, as_dim("max", second), keepdim, out)


@public()
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None, out: Any = None) -> Any:
    """The smallest element; with `dim`, values and indices along it; with a second tensor, the elementwise minimum."""
    if type(dim) is int:
        return _extreme("min", _min_dim, MIN, input, dim, keepdim, out)
    if dim is None and other is None:
        if out is None and input._array.size and input._kind.dtype.category != COMPLEX:
            return _min_all(input)
        return _whole_extreme("min", _min_all, input, out)
    second = dim if other is None else other
    if isinstance(second, Tensor) and not (keepdim and _is_dim(second)):
        return _pairwise(input.minimum(second), out)
    return _extreme("min", _min_dim, MIN, input, as_dim("min", second), keepdim, out)


def _is_dim(value: Tensor) -> bool:
    """Whether a tensor in the place of the dimension is one: beside `keepdim` there is no second operand."""
    return value._kind.dtype.category == INTEGER and not value._array.ndim


def as_dim(name: str, value: Any) -> int:
    """A dimension given as NumPy's integer, say; a TypeError for what is no integer."""
    dim = integer(value)
    if dim is None:
        raise TypeError(f"{name}(): argument 'dim' (position 2) must be int or Tensor, not {type(value).__name__}")
    return dim


def _pairwise(result: Tensor, out: Any) -> Tensor:
    return result if out is None else write_out(result, out)


def _aminmax_gradients(
    grads: Any, needs: Any, self: Tensor, min: Tensor, max: Tensor, dim: int | None, keepdim: bool
) -> list[Any]:
    dims = reduced_dims(dim, self.ndim)
    parts = [
        evenly_distributed(grad, self, result, dims, keepdim)
        for grad, result in zip(grads, (min, max), strict=True)
        if grad is not None
    ]
    return [parts[0] + parts[1] if len(parts) == 2 else parts[0] if parts else None]


@primitive("AmaxBackward0", axes=Along("dim"), self=_amax_gradient)
def _amax(self: Array, dim: tuple[int, ...], keepdim: bool) -> Array:
    return reduced(np.maximum, self, dim, keepdim)


@primitive("AminBackward0", axes=Along("dim"), self=_amax_gradient)
def _amin(self: Array, dim: tuple[int, ...], keepdim: bool) -> Array:
    return reduced(np.minimum, self, dim, keepdim)


@several("AminmaxBackward0", axes=Along("dim"), joint=_aminmax_gradients, results=("min", "max"))
def _aminmax(self: Array, dim: int | None, keepdim: bool) -> Any:
    dims = None if dim is None else reduced_dims(dim, self.ndim)
    return reduced(np.minimum, self, dims, keepdim), reduced(np.maximum, self, dims, keepdim)


def _bounds(name: str, kernel: str, op: Any, input: Tensor, dim: Dims, keepdim: bool, out: Any) -> Tensor:
    if input._kind.dtype.category == COMPLEX:
        raise no_kernel(kernel, input)
    dims = reduced_dims(dim, input._array.ndim)
    if input._array.size == 0:
        if dim is None or dim == () or dim == []:
            check_nonempty(name, input)
        for each in dims:
            check_nonempty(name, input, each)
    result: Tensor = op(input, dims, keepdim)
    if out is None:
        return result
    if isinstance(out, Tensor) and out.dtype is not input.dtype:
        raise RuntimeError(
            f"Expected the dtype for input and out to match, but got {LEGACY_NAMES[input.dtype]} for input's dtype and "
            f"{LEGACY_NAMES[out.dtype]} for out's dtype."
        )
    return write_out(result, out)


@public()
def amax(input: Tensor, dim: Dims = (), keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The largest elements along `dim`; equal ones share the gradient."""
    return _bounds("amax", "max_values_cpu", _amax, input, dim, keepdim, out)


@public()
def amin(input: Tensor, dim: Dims = (), keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The smallest elements along `dim`; equal ones share the gradient."""
    return _bounds("amin", "min_values_cpu", _amin, input, dim, keepdim, out)


@public()
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: Any = None) -> Any:
    """The smallest and the largest element."""
    if input._kind.dtype.category == COMPLEX:
        raise no_kernel("aminmax_cpu", input)
    if dim is None:
        if input._array.size == 0:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity: the input "
                f"has shape {list(input._array.shape)}."
            )
    else:
        dim = wrap_dim(dim, input._array.ndim)
        check_nonempty("aminmax", input, dim)
    result = named(AMINMAX, _aminmax(input, dim, keepdim))
    return result if out is None else store_exactly(result, out)


@primitive(None, axes=Along("dim"))
def _argmax(self: Array, dim: int | None, keepdim: bool) -> Array:
    if self.ndim == 0:
        return np.zeros((), np.int64, like=self)
    done = _place_along(self, dim, keepdim, True)
    return _laid_out(self.argmax(dim), self, dim, keepdim) if done is None else done


@primitive(None, axes=Along("dim"))
def _argmin(self: Array, dim: int | None, keepdim: bool) -> Array:
    if self.ndim == 0:
        return np.zeros((), np.int64, like=self)
    done = _place_along(self, dim, keepdim, False)
    return _laid_out(self.argmin(dim), self, dim, keepdim) if done is None else done


def _place_along(array: Any, dim: int | None, keepdim: bool, largest: bool) -> Any:
    """Where the first extremes of a large array are along `dim`; None where NumPy is to look for them."""
    if dim is None or array.size < LARGE:
        return None
    done = arrays.extremes(array, dim, keepdim, largest)
    return None if done is None else done[1]


def _laid_out(found: Any, array: Any, dim: int | None, keepdim: bool) -> Any:
    if found.ndim > 1 and not found.flags.c_contiguous:
        found = np.array(found, order="C", like=array)
    return found.reshape(kept_shape(array.shape, None if dim is None else (dim,))) if keepdim else found


def _position(
    name: str, op: Callable[..., Tensor], input: Tensor, dim: int | None, keepdim: bool, out: Tensor | None
) -> Tensor:
    category = input._kind.dtype.category
    if category in (COMPLEX, BOOL):
        raise RuntimeError(f"{name}(): does not support {'complex' if category == COMPLEX else 'bool'} input")
    if dim is not None:
        dim = wrap_dim(dim, input._array.ndim)
    check_nonempty(name, input, dim)
    return store_exactly(op(input, dim, keepdim), out)


@public()
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The index of the largest element."""
    return _position("argmax", _argmax, input, dim, keepdim, out)


@public()
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The index of the smallest element."""
    return _position("argmin", _argmin, input, dim, keepdim, out)
