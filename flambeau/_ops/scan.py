"""Running sums, products and extremes along a dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.dtype import COMPLEX, FLOAT, LEGACY_NAMES
from .._core.tensor import Tensor
from .binary import conj
from .dispatch import Array, primitive
from .extremes import value_selecting_gradient
from .reduce import sum_dtype
from .registry import public
from .return_types import return_type
from .view import wrap_dim


def _running(ufunc: Any, array: Any, dim: int, dtype: Any) -> Any:
    if dtype.itemsize == 2 and dtype.category == FLOAT:
        # Each partial result is rounded in half precision, as a scalar loop over such numbers would.
        wide = array.astype(np.float32)
        return (ufunc.accumulate(wide, axis=dim) if array.ndim else wide).astype(dtype.numpy)
    converted = array.astype(dtype.numpy)
    return ufunc.accumulate(converted, axis=dim) if array.ndim else converted


def reverse_cumsum(tensor: Tensor, dim: int) -> Tensor:
    """At each place the sum of the elements from there to the end."""
    return tensor.flip(dim).cumsum(dim).flip(dim) if tensor.ndim else tensor  # type: ignore[no-any-return]


@primitive("CumsumBackward0", self=lambda grad, dim: reverse_cumsum(grad, dim))
def _cumsum(self: Array, dim: int, dtype: Any) -> Array:
    return _running(np.add, self, dim, dtype)


@public(inplace=True, out=True)
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Running sum along `dim`.

    >>> flambeau.tensor([1, 2, 3]).cumsum(0)
    tensor([1, 3, 6])
    """
    return _cumsum(input, wrap_dim(dim, input._array.ndim), sum_dtype(input, dtype))  # type: ignore[no-any-return]


def _cumprod_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    if self.ndim == 0:
        return grad
    if not bool((self == 0).any()) and not grad.requires_grad:
        return reverse_cumsum(grad * conj(result), dim) / conj(self)
    # result[k] = product of the first k elements; its derivative by element i <= k is the product without i.
    size = self.shape[dim]
    parts = []
    for place in range(size):
        before = self.narrow(dim, 0, place).prod(dim, keepdim=True)
        after = self.narrow(dim, place + 1, size - place - 1)
        running = _cat([before, after], dim).cumprod(dim)
        parts.append((grad.narrow(dim, place, size - place) * conj(running)).sum(dim, keepdim=True))
    return _cat(parts, dim) if parts else grad  # type: ignore[no-any-return]


def _cat(tensors: list[Tensor], dim: int) -> Any:
    from .join import cat

    return cat(tensors, dim)


@primitive("CumprodBackward0", self=_cumprod_gradient)
def _cumprod(self: Array, dim: int, dtype: Any) -> Array:
    return _running(np.multiply, self, dim, dtype)


@public(inplace=True, out=True)
def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Running product along `dim`."""
    result = sum_dtype(input, dtype)
    if result is not input._kind.dtype and result.category >= FLOAT:
        input = input.to(result)
    return _cumprod(input, wrap_dim(dim, input._array.ndim), result)  # type: ignore[no-any-return]


def _running_extreme(array: Any, dim: int, largest: bool) -> tuple[Any, Any]:
    """Running extremes and where each was last attained; a NaN stays from where it occurs."""
    if array.ndim == 0 or array.shape[dim] == 0:
        return array.copy(), np.zeros(array.shape, np.int64)
    lines = np.moveaxis(array, dim, 0)
    comparable = lines.astype(np.uint8) if lines.dtype == bool else lines
    values = (np.maximum if largest else np.minimum).accumulate(comparable, axis=0)
    attained = comparable == values
    if comparable.dtype.kind in "fV":
        attained |= np.isnan(comparable)
    shape = (-1,) + (1,) * (lines.ndim - 1)
    places = np.where(attained, np.arange(len(lines), dtype=np.int64).reshape(shape), 0)
    indices = np.maximum.accumulate(places, axis=0)
    return (
        np.ascontiguousarray(np.moveaxis(values.astype(array.dtype), 0, dim)),
        np.ascontiguousarray(np.moveaxis(indices, 0, dim)),
    )


def _running_gradient(grad: Tensor, result1: Tensor, self_sym_sizes: Any, dim: int) -> Tensor:
    return value_selecting_gradient(grad, result1, self_sym_sizes, dim, True)


@primitive("CummaxBackward0", self=_running_gradient)
def _cummax(self: Array, dim: int) -> Any:
    return _running_extreme(self, dim, True)


@primitive("CumminBackward0", self=_running_gradient)
def _cummin(self: Array, dim: int) -> Any:
    return _running_extreme(self, dim, False)


def _ordered(name: str, input: Tensor, dim: int) -> int:
    if input._kind.dtype.category == COMPLEX:
        raise RuntimeError(f'"{name}" not implemented for {LEGACY_NAMES[input.dtype]!r}')
    return wrap_dim(dim, input._array.ndim)


@public(out=True)
def cummax(input: Tensor, dim: int) -> Any:
    """Running maximum along `dim`, with the index of each."""
    return return_type("cummax", ("values", "indices"))(*_cummax(input, _ordered("cummax_cpu", input, dim)))


@public(out=True)
def cummin(input: Tensor, dim: int) -> Any:
    """Running minimum along `dim`, with the index of each."""
    return return_type("cummin", ("values", "indices"))(*_cummin(input, _ordered("cummin_cpu", input, dim)))


def _logcumsumexp_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    if grad.ndim == 0:
        return grad
    if grad.dtype.is_complex:
        return reverse_cumsum(grad * conj((-result).exp()), dim) * conj(self.exp())  # type: ignore[no-any-return]
    positive = grad.clamp(min=0).log()
    negative = (-grad).clamp(min=0).log()

    def part(log_grad: Any) -> Any:
        return ((log_grad - result).flip(dim).logcumsumexp(dim).flip(dim) + self).exp()

    return part(positive) - part(negative)  # type: ignore[no-any-return]


@primitive("LogcumsumexpBackward0", self=_logcumsumexp_gradient)
def _logcumsumexp(self: Array, dim: int) -> Array:
    if self.ndim == 0:
        return self.copy()
    wide = self.astype(np.float32) if self.dtype.itemsize == 2 else self
    if wide.dtype.kind == "c":
        return np.log(np.add.accumulate(np.exp(wide), axis=dim)).astype(self.dtype)
    return np.logaddexp.accumulate(wide, axis=dim).astype(self.dtype, copy=False)


@public(out=True)
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Logarithm of the running sum of exponentials along `dim`."""
    if input._kind.dtype.category < FLOAT:
        raise RuntimeError(f'"logcumsumexp_out_cpu" not implemented for {LEGACY_NAMES[input.dtype]!r}')
    return _logcumsumexp(input, wrap_dim(dim, input._array.ndim))  # type: ignore[no-any-return]


@public(out=True)
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours along `dim`, `n` times over."""
    if input._array.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    ends = [each for each in (prepend, input, append) if each is not None]
    result = _cat(ends, dim) if len(ends) > 1 else input
    for _ in range(n):
        size = result.shape[dim]
        if size == 0:
            break
        later, earlier = result.narrow(dim, 1, size - 1), result.narrow(dim, 0, size - 1)
        result = later.logical_xor(earlier) if input._kind.dtype.name == "bool" else later - earlier
    return result.clone() if n == 0 else result  # type: ignore[no-any-return]
