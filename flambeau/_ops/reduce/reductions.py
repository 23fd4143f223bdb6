"""Reductions: sums, means, products, variances, norms, counts, over all elements or along dimensions."""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.arrays.quick import ZEROS, dim_moved
from ..._core.backend import FUNCTIONS, LARGE, as_array, read, undispatched
from ..._core.dtype import FLOAT, INTEGER, LEGACY_NAMES, float32, int64, uint8
from ..._core.dtype import dtype as DType
from ..._core.geometry.layout import contiguous_array
from ..._core.modes import THREAD
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL, FULL_RESULT, on
from ..._dispatch.axes import Along, Whole
from ..._dispatch.changes.exact_out import refuse_out, store_exactly, store_truth
from ..._dispatch.compiled_body import pointwise_at_any_size
from ..._dispatch.dispatch import Array, Primitive, Results, primitive, several
from ..._dispatch.gradients.array_derivatives import on_arrays
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from ..create.constants import as_dtype
from ..create.like import zeros_like
from ..pointwise.binary import conj
from ..shape.view import _expand, reshaped, wrap_dim

Dims = Any
"""None, an int or a sequence of ints."""


_ALL_DIMS = [tuple(range(ndim)) for ndim in range(65)]
"""By their number: arrays have at most 64."""


def reduced_dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The dimensions to reduce, counted from the front; None and () mean all."""
    if dim is None:
        return _ALL_DIMS[ndim]
    if type(dim) is int:
        if -ndim <= dim < ndim:
            return (dim % ndim,)
        wrapped_dim = wrap_dim(dim, ndim)
        return (wrapped_dim,) if ndim else ()
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if not dims:
        return _ALL_DIMS[ndim]
    wrapped = tuple([wrap_dim(each, ndim) for each in dims])
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"dim {max(set(wrapped), key=wrapped.count)} appears multiple times in the list of dims")
    return wrapped if ndim else ()


def expand_reduced(grad: Tensor, shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """The gradient of a reduction's result, spread over the shape that was reduced."""
    return _expand(restore_dims(grad, dim, keepdim), shape)


def restore_dims(tensor: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """A reduction's result with its reduced dimensions back, each of size 1."""
    if keepdim or not dim:
        return tensor
    shape = list(tensor._array.shape)
    for position in sorted(dim):
        shape.insert(position, 1)
    return reshaped(tensor, tuple(shape))


def no_kernel(kernel: str, input: Tensor) -> NotImplementedError:
    """PyTorch's error where an op has no code for a dtype."""
    return NotImplementedError(f'"{kernel}" not implemented for {LEGACY_NAMES[input._kind.dtype]!r}')


def in_single(array: Any) -> Any:
    """Half precision as float32, in which its reductions run; others as they are."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind in "fV" else array


def _reduced_by(ufunc: Any, array: Any, dim: tuple[int, ...] | None, dtype: Any, keepdim: bool) -> Any:
    """`ufunc.reduce`. Arrays of a device are called directly: where they raise, NumPy would keep them for ever."""
    if isinstance(array, (np.ndarray, np.generic)):
        return ufunc.reduce(array, dim, dtype, None, keepdim)
    return array.__array_ufunc__(ufunc, "reduce", array, axis=dim, dtype=dtype, keepdims=keepdim)


def reduced(ufunc: Any, array: Any, dim: tuple[int, ...] | None, keepdim: bool = False, dtype: Any = None) -> Any:
    """`array` reduced by `ufunc`; contiguous, as in PyTorch, whatever the layout of `array`.

    Integers need a `dtype`: NumPy would compute narrow ones in the machine's own. Long sums and products are
    computed in float64: NumPy would add up long columns one by one, and rounding errors with them.
    """
    if REPRODUCIBILITY.total is not None and ufunc is np.add and _is_summed_in_order(array, dtype):
        return REPRODUCIBILITY.total(array, dim, keepdim)
    if array.size >= LARGE or REPRODUCIBILITY.total is not None:
        if (done := _reduced_at_once(ufunc, array, dim, keepdim, dtype)) is not None:
            return done
        if ufunc in (np.add, np.multiply) and array.dtype.char in "fF" and dtype in (None, array.dtype):
            total = reduced(ufunc, array, dim, keepdim, np.float64 if array.dtype.char == "f" else np.complex128)
            return total.astype(array.dtype)
    if array.flags.c_contiguous and array.size:  # arrays without elements all say that they are contiguous
        return _reduced_by(ufunc, array, dim, dtype, keepdim)
    result = np.array(_reduced_by(ufunc, array, dim, dtype, False), order="C", like=array)
    return result.reshape(kept_shape(array.shape, dim)) if keepdim else result


def _is_summed_in_order(array: Any, dtype: Any) -> bool:
    """Whether sums of an array have an order at all: those of integers are the same in each."""
    return type(array) is np.ndarray and array.dtype.kind in "fc" and dtype in (None, array.dtype)


def _reduced_at_once(ufunc: Any, array: Any, dim: tuple[int, ...] | None, keepdim: bool, dtype: Any) -> Any:
    """The reduction in one pass; None: NumPy has to do it."""
    done = arrays.reduced(ufunc.__name__, array, dim, array.dtype if dtype is None else np.dtype(dtype))
    return done.reshape(kept_shape(array.shape, dim)) if keepdim and done is not None else done


def kept_shape(shape: tuple[int, ...], dim: tuple[int, ...] | None) -> tuple[int, ...]:
    """The shape of a reduction's result that keeps the reduced dimensions, each of size 1."""
    if dim is None:
        return (1,) * len(shape)
    return tuple([1 if position in dim else size for position, size in enumerate(shape)])


# ----- sum, mean, prod --------------------------------------------------------------------------------------------

_SINGLE = np.dtype(np.float32)
_BLOCK = 128
_FEW = 8 * _BLOCK
_add: Any = np.add.reduce


def _total(array: Any, dim: tuple[int, ...] | None, keepdim: bool) -> Any:
    """The sum; in blocks where NumPy would add up a long dimension one by one, and rounding errors with it."""
    if REPRODUCIBILITY.total is not None and _is_summed_in_order(array, None):
        return REPRODUCIBILITY.total(array, dim, keepdim)
    if array.size >= LARGE and (done := arrays.reduced("add", array, dim, array.dtype)) is not None:
        return done.reshape(kept_shape(array.shape, dim)) if keepdim else done
    if dim is not None and len(dim) == 1 and array.ndim > 1 and array.shape[dim[0]] > _FEW:
        axis = dim[0]
        size = array.shape[axis]
        if axis != array.ndim - 1 and array.dtype.kind in "fc":
            whole = size // _BLOCK * _BLOCK
            lines = dim_moved(array, axis, 0)
            blocks = np.add.reduce(lines[:whole].reshape(-1, _BLOCK, *lines.shape[1:]), 1)
            total = _total(blocks, (0,), False) + np.add.reduce(lines[whole:], 0)
            return total.reshape(kept_shape(array.shape, dim)) if keepdim else contiguous_array(total)
    return reduced(np.add, array, dim, keepdim)


def total_of(array: Any) -> Any:
    """The sum of all elements, a number."""
    if 0 < array.size < LARGE and array.flags.c_contiguous and REPRODUCIBILITY.total is None:
        return _add(array, None, None, None, False)
    return _total(array, None, False)


def sum_of_array(array: Any, dim: tuple[int, ...] | None, keepdim: bool, dtype: DType) -> Any:
    """The kernel of `sum`: over all dimensions for None, in `dtype`."""
    if array.dtype is dtype.numpy and dtype.itemsize > 2 and dtype.category >= FLOAT:
        if 0 < array.size <= _BLOCK and array.flags.c_contiguous and REPRODUCIBILITY.total is None:
            # What the others come to for a few elements.
            is_one = not keepdim and (dim is None or len(dim) == array.ndim)
            into = np.empty((), array.dtype) if is_one and type(array) is np.ndarray else None
            return _add(array, dim, None, into, keepdim)
        return _total(array, dim, keepdim)
    if dtype.category == FLOAT and dtype.itemsize == 2:
        wide = np.float64 if array.dtype.itemsize == 8 else np.float32
        if array.size >= LARGE and (done := _reduced_at_once(np.add, array, dim, keepdim, wide)) is not None:
            return done.astype(dtype.numpy)
        return as_array(_total(array.astype(wide), dim, keepdim)).astype(dtype.numpy)
    if dtype.category <= INTEGER:
        return reduced(np.add, array.astype(dtype.numpy, copy=False), dim, keepdim, dtype.numpy)
    return _total(array.astype(dtype.numpy), dim, keepdim)


def sum_dtype(name: str, tensor: Tensor, dtype: Any, out: Any) -> DType:
    """The dtype of a sum or product: the one asked for, that of `out`, or the tensor's own (int64 for integers)."""
    if dtype is not None:
        return as_dtype(dtype, name)
    if isinstance(out, Tensor):
        return out._kind.dtype
    own = tensor._kind.dtype
    return int64 if own.category <= INTEGER else own


@primitive("SumBackward0", axes=Whole("sum_dim"), self=lambda grad, self_sym_sizes: _expand(grad, self_sym_sizes))
def _sum_all(self: Array, dtype: Any) -> Array:
    return sum_of_array(self, None, False, dtype)


@primitive(
    "SumBackward1",
    axes=Along("dim"),
    self=lambda grad, self_sym_sizes, dim, keepdim: expand_reduced(grad, self_sym_sizes, dim, keepdim),
)
def _sum_dim(self: Array, dim: tuple[int, ...], keepdim: bool, dtype: Any) -> Array:
    if type(self) is np.ndarray and self.dtype is _SINGLE and self.size >= LARGE and dtype.numpy is _SINGLE:
        function = FUNCTIONS[np.ndarray]["reduced"]  # the commonest sums, in fewer steps
        if function is not None and REPRODUCIBILITY.total is None:
            done = function("add", self, dim, _SINGLE)
            if done is not None:
                return done.reshape(kept_shape(self.shape, dim)) if keepdim else done
    return sum_of_array(self, dim, keepdim, dtype)


@public(autocast=on(cuda=FULL_RESULT))
def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Tensor:
    """Sum of the elements, of all or along `dim`."""
    kind = input._kind
    plain = dtype is None and out is None and kind.differentiable
    result = kind.dtype if plain else sum_dtype("sum", input, dtype, out)
    if dim is None and not keepdim:
        total = _sum_all(input, result)
    else:
        total = _sum_dim(input, reduced_dims(dim, input._array.ndim), keepdim, result)
    return total if out is None else store_exactly(total, out)


def sum_over(input: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """`input.sum(dim, keepdim)` of a floating-point or complex tensor, over dimensions counted from the front."""
    return _sum_dim(input, dim, keepdim, input._kind.dtype)


def _nansum_gradient(grad: Tensor, self: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    return expand_reduced(grad, self._array.shape, dim, keepdim) * self.isnan().logical_not()


@primitive("NansumBackward0", axes=Along("dim"), self=_nansum_gradient)
def _nansum(self: Array, dim: tuple[int, ...], keepdim: bool, dtype: Any) -> Array:
    if self.size >= LARGE and self.dtype is dtype.numpy:
        done = arrays.reduced("present", self, dim, self.dtype)
        if done is not None:
            return done.reshape(kept_shape(self.shape, dim)) if keepdim else done
    if type(self) is np.ndarray and not keepdim and len(dim) == self.ndim and self.dtype in ZEROS:
        total = sum_of_array(self, None, False, dtype)
        if not math.isnan(total):  # then there was none to be left out
            return total
    return sum_of_array(_without_nan(self), dim, keepdim, dtype)


@pointwise_at_any_size
def _without_nan(array: Any) -> Any:
    return np.where(array != array, array.dtype.type(0), array)


def _store_nansum(result: Tensor, out: Any, operands: tuple[Any, ...]) -> Tensor:
    has_nan = operands[0]._kind.dtype.category == FLOAT
    if has_nan and isinstance(out, Tensor) and out._kind.dtype.category != FLOAT:
        raise no_kernel("nansum_cpu", out)
    return write_out(result, out, operands)


@public(out=_store_nansum)
def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum with NaN counted as zero."""
    own = input._kind.dtype
    if own.is_complex:
        raise RuntimeError(f"nansum on CPU does not support complex inputs: got {LEGACY_NAMES[own]}")
    if own.category < FLOAT:
        return sum(input, dim, keepdim, dtype=dtype)
    return _nansum(input, reduced_dims(dim, input._array.ndim), keepdim, own if dtype is None else dtype)


def _mean_of(array: Any, dim: tuple[int, ...] | None, keepdim: bool, dtype: DType) -> Any:
    if dim is None:
        count = array.size
    else:
        count = array.shape[dim[0]] if len(dim) == 1 else math.prod([array.shape[each] for each in dim])
    if array.dtype is dtype.numpy and dtype.itemsize > 2:
        is_small = count <= _FEW and 0 < array.size < LARGE and array.flags.c_contiguous
        if is_small and type(array) is np.ndarray and REPRODUCIBILITY.total is None:
            return _add(array, dim, None, None, keepdim) / count  # as `_total` does it, after more questions
        return _total(array, dim, keepdim) / count
    wide = array.astype(np.float32 if dtype.itemsize == 2 else dtype.numpy)
    return as_array(_total(wide, dim, keepdim) / count).astype(dtype.numpy, copy=False)


@primitive(
    "MeanBackward0",
    axes=Whole("mean_dim"),
    self=lambda grad, self_sym_sizes, self_sym_numel: grad.expand(self_sym_sizes) / self_sym_numel,
)
def _mean_all(self: Array, dtype: Any) -> Array:
    return _mean_of(self, None, False, dtype)


def _mean_array(grad: Any, self_sym_sizes: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> Any:
    if type(grad) is not np.ndarray or not grad.flags.c_contiguous or not dim or REPRODUCIBILITY.machine:
        return None
    parts = grad / math.prod([self_sym_sizes[each] for each in dim])
    spread = np.empty(self_sym_sizes, grad.dtype)
    spread[...] = parts if keepdim else parts.reshape(kept_shape(self_sym_sizes, dim))
    return spread


@on_arrays(_mean_array)
def _mean_gradient(grad: Tensor, self_sym_sizes: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> Tensor:
    count = math.prod([self_sym_sizes[each] for each in dim])
    return expand_reduced(grad, self_sym_sizes, dim, keepdim) / count


@primitive("MeanBackward1", axes=Along("dim"), self=_mean_gradient)
def _mean_dim(self: Array, dim: tuple[int, ...], keepdim: bool, dtype: Any) -> Array:
    return _mean_of(self, dim, keepdim, dtype)


@public(out=write_out)
def mean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Arithmetic mean, of all elements or along `dim`."""
    result = input._kind.dtype if dtype is None else dtype
    if result.category < FLOAT:
        raise RuntimeError(
            f"mean(): could not infer output dtype. {'Input' if dtype is None else 'Optional'} dtype must be either a "
            f"floating point or complex dtype. Got: {LEGACY_NAMES[result]}. Convert first, as in x.float().mean()"
        )
    if dim is None and not keepdim:
        return _mean_all(input, result)
    return _mean_dim(input, reduced_dims(dim, input._array.ndim), keepdim, result)


@public(out=_store_nansum)
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Mean of the elements that are not NaN."""
    own = input._kind.dtype
    if own.category < FLOAT:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {LEGACY_NAMES[own]}"
        )
    counted = sum(input.isnan().logical_not(), dim, keepdim)
    total = nansum(input, dim, keepdim, dtype=dtype)
    if total._kind.dtype.itemsize == 2 and not total._array.ndim:  # a single count need not fit into half precision
        return (total.to(float32) / counted).to(total._kind.dtype)
    return total / counted


def _prod_of(array: Any, dim: tuple[int, ...] | None, keepdim: bool, dtype: DType) -> Any:
    if array.dtype is dtype.numpy and dtype.itemsize > 2:
        return reduced(np.multiply, array, dim, keepdim, array.dtype)
    half = dtype.itemsize == 2 and dtype.category == FLOAT
    wide = array.astype(np.float32 if half else dtype.numpy)
    return as_array(reduced(np.multiply, wide, dim, keepdim, wide.dtype)).astype(dtype.numpy, copy=False)


def _product_of_others(tensor: Tensor, dim: int) -> Tensor:
    """For each element the product of all the others along `dim`; right where elements are zero, too."""
    size = tensor.shape[dim]
    if size == 0:
        return tensor
    ones = tensor.new_ones([1 if place == dim % tensor.ndim else each for place, each in enumerate(tensor.shape)])
    before = _cat([ones, tensor.narrow(dim, 0, size - 1)], dim).cumprod(dim)
    after = _cat([ones, tensor.flip(dim).narrow(dim, 0, size - 1)], dim).cumprod(dim).flip(dim)
    return before * after


def _cat(tensors: list[Tensor], dim: int) -> Tensor:
    from ..shape.join import cat

    return cat(tensors, dim)


def _is_without_zeros(self: Tensor) -> bool:
    if REPRODUCIBILITY.product is not None:
        return False  # nobody asks: a sample's gradient does not depend on zeros of others
    return not self._kind.dataless and bool(read(self._array.all()))


def _prod_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    if self.ndim == 0:
        return grad
    if _is_without_zeros(self):
        return grad * conj(result / self)
    plain = REPRODUCIBILITY.product is None and not self._kind.dataless and not THREAD.modes.grad
    if plain and int(read((self == 0).sum())) > 1:
        return zeros_like(self)  # whatever stands beside the zeros
    return grad * conj(_product_of_others(self.reshape(-1), 0)).reshape(self.shape)


@primitive("ProdBackward0", axes=Whole("prod_dim", flat=True), self=_prod_gradient)
def _prod_all(self: Array, dtype: Any) -> Array:
    return _prod_of(self, None, False, dtype)


def _prod_dim_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: int, keepdim: bool) -> Tensor:
    if self.ndim == 0:
        return grad
    spread = restore_dims(grad, (dim,), keepdim)
    if _is_without_zeros(self):
        return spread * conj(restore_dims(result, (dim,), keepdim) / self)
    return spread * conj(_product_of_others(self, dim))


@primitive("ProdBackward1", axes=Along("dim"), self=_prod_dim_gradient)
def _prod_dim(self: Array, dim: int, keepdim: bool, dtype: Any) -> Array:
    return _prod_of(self, (dim,) if self.ndim else None, keepdim, dtype)


@public(autocast=on(cpu=FULL, cuda=FULL_RESULT))
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Tensor:
    """Product of the elements, of all or along `dim`."""
    if dim is None:
        refuse_out("prod", out)
    result = sum_dtype("prod", input, dtype, out)
    if input._kind.dtype is not result and result.category >= FLOAT:
        input = input.to(result)
    if dim is None:
        return _prod_all(input, result)
    return store_exactly(_prod_dim(input, wrap_dim(dim, input._array.ndim), keepdim, result), out)


# ----- variance ---------------------------------------------------------------------------------------------------


@functools.lru_cache(1024)
def _count_along(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    """How many elements are reduced to one."""
    return math.prod([shape[each] for each in dims])


def _moments(array: Any, dim: tuple[int, ...], correction: float, keepdim: bool, root: bool) -> tuple[Any, Any]:
    """Variance, or its root, and mean, in float32 where `array` is half precision."""
    count = _count_along(array.shape, dim)
    free = max(0, count - correction)
    done = arrays.variances(array, dim, float(free), keepdim, root)
    if done is None:
        variance, mean = _moments_by_steps(array, dim, count, free, keepdim)
        done = np.sqrt(variance) if root else variance, mean
    return done


def _moments_by_steps(array: Any, dim: tuple[int, ...], count: int, free: float, keepdim: bool) -> tuple[Any, Any]:
    """Variance and mean of `count` elements with `free` degrees of freedom."""
    if array.size >= LARGE:
        total = _reduced_at_once(np.add, array, dim, True, np.float64)
        squares = None if total is None else arrays.squared_deviations(array, dim, total / count)
        if squares is not None:
            exact = np.float64 if array.dtype.itemsize == 8 else np.float32
            squares = squares.reshape(kept_shape(array.shape, dim)) if keepdim else squares
            return (squares / free).astype(exact), (total / count).astype(exact)
    wide = in_single(array)
    # Of a few the total comes to this.
    few = 0 < array.size <= _BLOCK and array.flags.c_contiguous and REPRODUCIBILITY.total is None
    mean = (_add(wide, dim, None, None, True) if few else _total(wide, dim, True)) / count
    apart = wide - mean
    squares = np.square(apart) if apart.dtype.kind == "f" else (apart * apart.conjugate()).real
    return (_add(squares, dim, None, None, keepdim) if few else _total(squares, dim, keepdim)) / free, mean


def _var_gradient(grad: Tensor, self: Tensor, dim: tuple[int, ...], correction: float, keepdim: bool) -> Tensor:
    free = math.prod(self.shape[each] for each in dim) - correction
    scale = 2.0 / free if free else math.nan
    return restore_dims(grad, dim, keepdim) * scale * (self - self.mean(dim, keepdim=True))


def _std_gradient(
    grad: Tensor, self: Tensor, result: Tensor, dim: tuple[int, ...], correction: float, keepdim: bool
) -> Tensor:
    scaled = (grad / (result * 2)).masked_fill(result == 0, 0)
    return _var_gradient(scaled, self, dim, correction, keepdim)


def _var_mean_gradients(
    grads: Any, needs: Any, self: Tensor, dim: tuple[int, ...], correction: float, keepdim: bool
) -> list[Any]:
    of_var = None if grads[0] is None else _var_gradient(grads[0], self, dim, correction, keepdim)
    return [_with_mean(of_var, grads[1], self, dim, keepdim)]


def _std_mean_gradients(
    grads: Any, needs: Any, self: Tensor, result0: Tensor, dim: tuple[int, ...], correction: float, keepdim: bool
) -> list[Any]:
    of_std = None if grads[0] is None else _std_gradient(grads[0], self, result0, dim, correction, keepdim)
    return [_with_mean(of_std, grads[1], self, dim, keepdim)]


def _with_mean(spread: Any, grad: Any, self: Tensor, dim: tuple[int, ...], keepdim: bool) -> Any:
    if grad is None:
        return spread
    of_mean = _mean_gradient(grad, self._array.shape, dim, keepdim)
    return of_mean if spread is None else spread + of_mean


@primitive("VarBackward0", axes=Along("dim"), self=_var_gradient)
def _var(self: Array, dim: tuple[int, ...], correction: float, keepdim: bool) -> Array:
    return _rounded(_moments(self, dim, correction, keepdim, False)[0], self)


@primitive("StdBackward0", axes=Along("dim"), self=_std_gradient)
def _std(self: Array, dim: tuple[int, ...], correction: float, keepdim: bool) -> Array:
    return _rounded(_moments(self, dim, correction, keepdim, True)[0], self)


def _rounded(value: Any, source: Any) -> Any:
    """`value` in the precision of `source`, from which it was computed in float32 if that is half precision."""
    return value.astype(source.dtype) if source.dtype.itemsize == 2 else value


def _both(array: Any, dim: tuple[int, ...], correction: float, keepdim: bool, root: bool) -> tuple[Any, Any]:
    variance, mean = _moments(array, dim, correction, keepdim, root)
    return (
        _rounded(variance, array),
        _rounded(mean, array).reshape(np.shape(variance)),
    )


@several("VarMeanBackward0", axes=Along("dim"), joint=_var_mean_gradients)
def _var_mean(self: Array, dim: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    return _both(self, dim, correction, keepdim, False)


@several("StdMeanBackward0", axes=Along("dim"), joint=_std_mean_gradients)
def _std_mean(self: Array, dim: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    return _both(self, dim, correction, keepdim, True)


def _variance_or_std(
    op: Primitive[..., Results],
    name: str,
    kin: str,
    input: Tensor,
    dim: Dims,
    unbiased: Any,
    keepdim: bool,
    correction: Any,
) -> Results:
    if input._kind.dtype.category < FLOAT:
        raise RuntimeError(f"{kin} only support floating point and complex dtypes: {name} of {input.dtype}")
    if isinstance(dim, bool):
        if unbiased is not None or correction is not None:
            raise TypeError(f"{name}(): argument 'dim' must be tuple of ints, not bool")
        dim, unbiased = None, dim  # var(unbiased)
    if unbiased is not None and not isinstance(unbiased, bool):
        raise TypeError(f"{name}(): argument 'unbiased' must be bool, not {type(unbiased).__name__}")
    if unbiased is not None and correction is not None:
        raise TypeError(f"{name}(): give unbiased or correction, not both")
    dims = reduced_dims(dim, input._array.ndim)
    free = (1 if unbiased is None or unbiased else 0) if correction is None else correction
    if _count_along(input._array.shape, dims) - free <= 0:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            f"(input numel divided by output numel): shape {list(input._array.shape)}, dims {list(dims)}, "
            f"correction {free}.",
            UserWarning,
            stacklevel=4,
        )
    return op(input, dims, free, keepdim)


@public()
def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: Any = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
    out: Any = None,
) -> Tensor:
    """Variance; `correction` is subtracted from the number of elements (1 unless told)."""
    if isinstance(dim, bool):
        refuse_out("var", out)
    result = _variance_or_std(_var, "var", "std and var", input, dim, unbiased, keepdim, correction)
    return result if out is None else write_out(result, out, (input,))


@public()
def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: Any = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
    out: Any = None,
) -> Tensor:
    """Standard deviation; `correction` as in `var`."""
    if isinstance(dim, bool):
        refuse_out("std", out)
    result = _variance_or_std(_std, "std", "std and var", input, dim, unbiased, keepdim, correction)
    return result if out is None else write_out(result, out, (input,))


@public(method=False)
def var_mean(
    input: Tensor, dim: Dims = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> tuple[Tensor, Tensor]:
    """Variance and mean."""
    variance, mean = _variance_or_std(_var_mean, "var_mean", "var_mean", input, dim, unbiased, keepdim, correction)
    return variance, mean


@public(method=False)
def std_mean(
    input: Tensor, dim: Dims = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean."""
    deviation, mean = _variance_or_std(_std_mean, "std_mean", "std_mean", input, dim, unbiased, keepdim, correction)
    return deviation, mean


# ----- truth and counts -------------------------------------------------------------------------------------------


@primitive(None, axes=Along("dim"))
def _all(self: Array, dim: tuple[int, ...] | None, keepdim: bool) -> Array:
    return reduced(np.logical_and, self if self.dtype == bool else self.astype(bool), dim, keepdim)


@primitive(None, axes=Along("dim"))
def _any(self: Array, dim: tuple[int, ...] | None, keepdim: bool) -> Array:
    return reduced(np.logical_or, self if self.dtype == bool else self.astype(bool), dim, keepdim)


def _truth(op: Any, input: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    none = isinstance(dim, (tuple, list)) and not dim  # unlike elsewhere, () means no dimension here
    result: Tensor = op(input, () if none else reduced_dims(dim, input._array.ndim), keepdim)
    return result.to(uint8) if input._kind.dtype is uint8 else result


@public(out=store_truth)
def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether all elements are true, altogether or along `dim`."""
    return _truth(_all, input, dim, keepdim)


@public(out=store_truth)
def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether any element is true, altogether or along `dim`."""
    return _truth(_any, input, dim, keepdim)


_count = undispatched(np.count_nonzero)


@primitive(None, axes=Along("dim"))
def _count_nonzero(self: Array, dim: tuple[int, ...]) -> Array:
    if len(dim) == self.ndim:
        if type(self) is np.ndarray and self.dtype.kind in "fiub":
            return np.array(_count(self), np.int64)
        return np.array(np.count_nonzero(self != 0), np.int64, like=self)
    return reduced(np.add, (self != 0).astype(np.int64), dim)


@public(method=False)
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """How many elements are not zero."""
    return _count_nonzero(input, reduced_dims(dim, input._array.ndim))


@public(function=False, name="count_nonzero")
def _method_count_nonzero(input: Tensor, *dim: Any) -> Tensor:
    """How many elements are not zero."""
    return count_nonzero(input, dim[0] if len(dim) == 1 else dim or None)
