"""Running sums, products and extremes along a dimension."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.arrays.quick import dim_moved
from ..._core.backend import LARGE, read
from ..._core.dtype import BOOL, COMPLEX, FLOAT, int64
from ..._core.geometry.layout import contiguous_array
from ..._core.modes import THREAD
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL_RESULT, on
from ..._dispatch.arguments.promotion import Number
from ..._dispatch.axes import Along
from ..._dispatch.changes.exact_out import store_exactly
from ..._dispatch.dispatch import Array, Primitive, primitive, several
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from ..._dispatch.public.return_types import named, return_type
from ..create.like import zeros_like
from ..index.gather import value_selecting_reduction_backward
from ..index.masked import where
from ..pointwise.binary import conj
from ..shape.parts import narrow
from ..shape.view import wrap_dim
from .reductions import no_kernel, sum_dtype

CUMMAX = return_type("cummax", ("values", "indices"))
CUMMIN = return_type("cummin", ("values", "indices"))


@functools.cache
def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What running sums and products of `dtype` are kept in: errors must not build up over a long dimension."""
    if dtype.kind not in "fcV":
        return dtype
    return np.dtype(np.complex128 if dtype.kind == "c" else np.float32 if dtype.itemsize == 2 else np.float64)


def _running(ufunc: Any, array: Any, dim: int, dtype: Any) -> Any:
    if array.ndim == 0:
        return array.astype(dtype.numpy)
    if array.dtype is not dtype.numpy:
        array = array.astype(dtype.numpy, copy=False)
    if array.size >= LARGE:
        done = arrays.running(ufunc.__name__, array, dim)
        if done is not None:
            return done
    wide = _wide(array.dtype)
    if wide is array.dtype:
        result = ufunc.accumulate(array, dim, wide)
    else:
        result = ufunc.accumulate(array.astype(wide), dim).astype(array.dtype)
    return result if array.flags.c_contiguous else np.array(result, order="C", like=array)


def _scanned(op: Primitive[..., Tensor], name: str, input: Tensor, dim: int, dtype: Any, out: Any) -> Tensor:
    """What `op` gives along `dim`, in the dtype that it is to be in."""
    own = input._kind.dtype
    if dtype is None and out is None and own.category >= FLOAT:
        return op(input, wrap_dim(dim, input._array.ndim), own)
    result = sum_dtype(name, input, dtype, out)
    if result.category == BOOL:
        raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool'")
    if op is _cumprod and result is not own and result.category >= FLOAT:
        input = input.to(result)
    return store_exactly(op(input, wrap_dim(dim, input._array.ndim), result), out)


def reverse_cumsum(tensor: Tensor, dim: int) -> Tensor:
    """At each place the sum of the elements from there to the end."""
    return tensor.flip(dim).cumsum(dim).flip(dim) if tensor.ndim else tensor


@primitive("CumsumBackward0", axes=Along("dim"), self=lambda grad, dim: reverse_cumsum(grad, dim))
def _cumsum(self: Array, dim: int, dtype: Any) -> Array:
    return _running(np.add, self, dim, dtype)


@public(inplace=True, autocast=on(cuda=FULL_RESULT))
def cumsum(input: Tensor, dim: int, *, dtype: Any = None, out: Any = None) -> Tensor:
    """Running sum along `dim`."""
    return _scanned(_cumsum, "cumsum", input, dim, dtype, out)


def _cumprod_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    if self.numel() <= 1:
        return grad
    if REPRODUCIBILITY.product is None:  # else a sample's zeros are its own affair
        if not bool(read((self == 0).any())):
            return reverse_cumsum(grad * conj(result), dim) / conj(self)
        if not THREAD.modes.grad:
            return _cumprod_gradient_at_zeros(grad, conj(self), conj(result), dim)
    # Element i is a factor of every result k >= i. Its gradient is the product of the elements before it, times
    # rest(i) = grad(i) + element(i + 1) * rest(i + 1). No division: zeros do no harm.
    ones = grad.new_ones(grad.narrow(dim, 0, 1).shape)
    before = _cat([ones, conj(self).narrow(dim, 0, self.shape[dim] - 1)], dim).cumprod(dim)
    return before * _fading_gradient(grad, self, dim)


def _cumprod_gradient_at_zeros(grad: Tensor, factors: Tensor, result: Tensor, dim: int) -> Tensor:
    """The gradient where a factor is zero: elements before the first zero do not see what follows it, that zero sees
    what lies between it and the second one, and elements behind it are in no product that is not zero.
    """
    zeros = factors == 0
    passed = zeros.cumsum(dim)
    before, until_second = passed == 0, passed == 1
    first = zeros & until_second
    early = reverse_cumsum(where(before, grad * result, 0), dim) / factors
    place = first.to(int64).argmax(dim, keepdim=True)
    product_before = where(place == 0, 1, result.gather(dim, (place - 1).clamp(0)))
    products = where(until_second & ~first, factors, 1).cumprod(dim)
    at_first = (products * where(until_second, grad, 0)).sum(dim, keepdim=True) * product_before
    return where(first, at_first, where(before, early, 0))


def _cat(tensors: list[Tensor], dim: int) -> Tensor:
    from ..shape.join import cat

    return cat(tensors, dim)


@primitive("CumprodBackward0", axes=Along("dim"), self=_cumprod_gradient)
def _cumprod(self: Array, dim: int, dtype: Any) -> Array:
    return _running(np.multiply, self, dim, dtype)


@public(inplace=True, autocast=on(cuda=FULL_RESULT))
def cumprod(input: Tensor, dim: int, *, dtype: Any = None, out: Any = None) -> Tensor:
    """Running product along `dim`."""
    return _scanned(_cumprod, "cumprod", input, dim, dtype, out)


def _running_extreme(array: Any, dim: int, largest: bool) -> tuple[Any, Any]:
    """Running extremes and where each was last attained; a NaN stays from where it occurs."""
    if array.ndim == 0 or array.shape[dim] == 0:
        return array.copy(), np.zeros(array.shape, np.int64, like=array)
    done = arrays.running_extremes(array, dim, largest)
    if done is not None:
        return done
    lines = dim_moved(array, dim, 0)
    comparable = lines.astype(np.uint8) if lines.dtype == bool else lines
    values = (np.maximum if largest else np.minimum).accumulate(comparable, axis=0)
    attained = comparable == values
    if comparable.dtype.kind in "fV":
        attained |= np.isnan(comparable)
    shape = (-1,) + (1,) * (lines.ndim - 1)
    places = np.where(attained, np.arange(len(lines), dtype=np.int64, like=array).reshape(shape), 0)
    indices = np.maximum.accumulate(places, axis=0)
    return (
        contiguous_array(dim_moved(values.astype(array.dtype), 0, dim)),
        contiguous_array(dim_moved(indices, 0, dim)),
    )


def _running_gradient(grad: Tensor, indices: Tensor, self_sym_sizes: Any, dim: int) -> Tensor:
    return value_selecting_reduction_backward(grad, indices, self_sym_sizes, dim, True)


@several("CummaxBackward0", axes=Along("dim"), results=("values", "indices"), self=_running_gradient)
def _cummax(self: Array, dim: int) -> Any:
    return _running_extreme(self, dim, True)


@several("CumminBackward0", axes=Along("dim"), results=("values", "indices"), self=_running_gradient)
def _cummin(self: Array, dim: int) -> Any:
    return _running_extreme(self, dim, False)


def _ordered(name: str, input: Tensor, dim: int) -> int:
    if input._kind.dtype.category == COMPLEX:
        raise no_kernel(name, input)
    return wrap_dim(dim, input._array.ndim)


@public()
def cummax(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """Running maximum along `dim`, with the index of each."""
    result = named(CUMMAX, _cummax(input, _ordered("cummax_cpu", input, dim)))
    return result if out is None else store_exactly(result, out)


@public()
def cummin(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """Running minimum along `dim`, with the index of each."""
    result = named(CUMMIN, _cummin(input, _ordered("cummin_cpu", input, dim)))
    return result if out is None else store_exactly(result, out)


def _fading_gradient(grad: Tensor, fade: Tensor, dim: int) -> Tensor:
    return _fading_sum(grad.flip(dim), _shifted(conj(fade).flip(dim), dim), dim).flip(dim)


def _fade_gradient(grad: Tensor, fade: Tensor, result: Tensor, dim: int) -> Tensor:
    return _fading_gradient(grad, fade, dim) * conj(_shifted(result, dim))


@primitive("FadingSumBackward0", axes=Along("dim"), self=_fading_gradient, fade=_fade_gradient)
def _fading_sum(self: Array, fade: Array, dim: int) -> Array:
    """Running sums in which what was summed so far is multiplied by `fade` at each step."""
    if self.size >= LARGE:
        done = arrays.running("fading", self, dim, fade)
        if done is not None:
            return done
    wide = _wide(self.dtype)
    result = np.array(self, wide, order="C", like=self)
    lines, fades = dim_moved(result, dim, 0), dim_moved(fade.astype(wide, copy=False), dim, 0)
    for place in range(1, len(lines)):
        lines[place] += fades[place] * lines[place - 1]
    return result.astype(self.dtype, copy=False)


def _shifted(tensor: Any, dim: int) -> Tensor:
    """One step later along `dim`; zero comes first."""
    size = tensor.shape[dim]
    return _cat([zeros_like(tensor.narrow(dim, 0, 1)), tensor.narrow(dim, 0, size - 1)], dim)


def _logcumsumexp_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """Each exponential is relative to the running sum, so that none overflows."""
    if grad.ndim == 0 or grad.numel() == 0:
        return grad
    later = conj(result).flip(dim)
    before = _cat([later.narrow(dim, 0, 1), later.narrow(dim, 0, later.shape[dim] - 1)], dim)
    fade = (later - before).exp().masked_fill(later.real == -math.inf, 0)
    weight = (conj(self) - conj(result)).exp().masked_fill(self.real == -math.inf, 0)
    return _fading_sum(grad.flip(dim), fade, dim).flip(dim) * weight


@primitive("LogcumsumexpBackward0", axes=Along("dim"), self=_logcumsumexp_gradient)
def _logcumsumexp(self: Array, dim: int) -> Array:
    if self.ndim == 0:
        return self.copy()
    if self.dtype.kind == "c":
        return _complex_logcumsumexp(self, dim)
    if self.size >= LARGE:
        done = arrays.running("logaddexp", self, dim)
        if done is not None:
            return done
    result = np.logaddexp.accumulate(self.astype(np.float64, copy=False), axis=dim).astype(self.dtype, copy=False)
    return result if self.flags.c_contiguous else np.array(result, order="C", like=self)


def _complex_logcumsumexp(array: Any, dim: int) -> Any:
    result = np.array(array, np.complex128, order="C", like=array)
    lines = dim_moved(result, dim, 0)
    for place in range(1, len(lines)):
        before, here = lines[place - 1], lines[place]
        swap = before.real > here.real
        larger, smaller = np.where(swap, before, here), np.where(swap, here, before)
        added = larger + np.log1p(np.exp(smaller - larger))  # exp of what is not positive cannot overflow
        added = np.where(np.isinf(larger.real), larger, added)
        lines[place] = np.where(np.isnan(before) | np.isnan(here), complex(np.nan, np.nan), added)
    return result.astype(array.dtype, copy=False)


@public()
def logcumsumexp(input: Tensor, dim: int, *, out: Any = None) -> Tensor:
    """Logarithm of the running sum of exponentials along `dim`."""
    if input._kind.dtype.category < FLOAT:
        raise no_kernel("logcumsumexp_out_cpu", input)
    return store_exactly(_logcumsumexp(input, wrap_dim(dim, input._array.ndim)), out)


@public()
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Any = None,
) -> Tensor:
    """Differences of neighbours along `dim`, `n` times over."""
    result = _differences(input, n, dim, prepend, append)
    if out is None:
        return result
    if n == 0:  # a mere copy, which is not converted
        return store_exactly(result, out, (input,))
    return write_out(result, out, (input, prepend, append))


def _differences(input: Tensor, n: int, dim: int, prepend: Tensor | None, append: Tensor | None) -> Tensor:
    ndim = input._array.ndim
    if ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    for end in (prepend, append):
        if end is not None:
            _check_end(input, end, wrap_dim(dim, ndim))
    if n == 0:
        return zeros_like(input).copy_(input)
    dim = wrap_dim(dim, ndim)
    ends = [each for each in (prepend, input, append) if each is not None]
    result = _cat(ends, dim) if len(ends) > 1 else input
    for _ in range(n):
        size = result._array.shape[dim]
        if size == 0:
            break
        later, earlier = narrow(result, dim, 1, size - 1), narrow(result, dim, 0, size - 1)
        result = later.logical_xor(earlier) if result._kind.dtype.category == BOOL else later - earlier
    return result


def _check_end(input: Tensor, end: Tensor, dim: int) -> None:
    shape, given = input._array.shape, end._array.shape
    if len(given) != len(shape):
        raise RuntimeError(
            "diff expects prepend or append to be the same dimension as input: "
            f"they have shapes {list(given)} and {list(shape)}"
        )
    for position, (size, other) in enumerate(zip(shape, given, strict=True)):
        if position != dim and size != other:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the "
                f"differencing dimension; input.size({position}) = {size}, but got tensor.size({position}) = {other}"
            )


def _neighbour_sums(y: Tensor, dim: int) -> Tensor:
    steps = max(y._array.shape[dim] - 1, 0)
    return y.narrow(dim, y._array.shape[dim] - steps, steps) + y.narrow(dim, 0, steps)


def _steps(y: Tensor, x: Tensor, dim: int) -> Tensor:
    """The distances of the sample points `x` along `dim`, in a shape that meets `y`."""
    if x._array.ndim == 1:
        shape = [1] * y._array.ndim
        shape[dim] = -1
        return x.diff().reshape(shape)
    missing = y._array.ndim - x._array.ndim
    return x.reshape([1] * missing + list(x._array.shape)).diff(dim=dim)


def _check_trapezoid(name: str, y: Tensor, x: Any, dx: Any, dim: int) -> int:
    if y._array.ndim == 0:
        raise IndexError(f"{name}: Dimension specified as {dim} but tensor has no dimensions")
    dim = wrap_dim(dim, y._array.ndim)
    if x is not None:
        if x._kind.dtype.category == BOOL or y._kind.dtype.category == BOOL:
            raise RuntimeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")
        if x.ndim == 1 and x.numel() != y.shape[dim]:
            raise RuntimeError(
                f"{name}: There must be one `x` value for each sample point: "
                f"`x` has {x.numel()} values, `y` has {y.shape[dim]} along dimension {dim}"
            )
    elif y._kind.dtype.category == BOOL:
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    elif isinstance(dx, complex):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    return dim


@public("trapz", method=False)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number = 1, dim: int = -1) -> Tensor:
    """The integral of `y` along `dim` by the trapezoidal rule; `x` or `dx` tell where the samples are."""
    dim = _check_trapezoid("trapezoid", y, x, dx, dim)
    size = y._array.shape[dim]
    if size == 0:
        return y.new_zeros([each for position, each in enumerate(y._array.shape) if position != dim])
    if x is not None:
        return (_steps(y, x, dim) * _neighbour_sums(y, dim)).sum(dim) / 2.0
    ends = (y.select(dim, 0) + y.select(dim, size - 1)) * 0.5
    area: Tensor = (y.sum(dim) - ends) * dx
    return area


@public(method=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number = 1, dim: int = -1) -> Tensor:
    """The running integral of `y` along `dim` by the trapezoidal rule."""
    dim = _check_trapezoid("cumulative_trapezoid", y, x, dx, dim)
    if x is not None:
        return (_steps(y, x, dim) * _neighbour_sums(y, dim)).cumsum(dim) / 2.0
    areas: Tensor = _neighbour_sums(y, dim) * (dx / 2.0)
    return areas.cumsum(dim)
