"""What sparse tensors compute: sums, products with numbers and tensors, functions that keep zeros."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.arrays.quick import joint_shape
from ..._core.arrays.sparse import (
    COO,
    CooArray,
    coalesced_array,
    each_row,
    flat_indices,
    no_elements,
    positions_in,
)
from ..._core.backend import backend_of_array, read
from ..._core.device import CPU, usable_device
from ..._core.device import device as Device
from ..._core.dtype import FLOAT
from ..._core.modes import THREAD, recording
from ..._core.sparse import SparseTensor
from ..._core.tensor import Tensor, wrap
from ..._dispatch.arguments.promotion import is_number, result_type_of
from ..._dispatch.changes.history import end_change
from ..._dispatch.changes.inplace import adopt, before_change, check_castable, check_writable
from ..._dispatch.dispatch import Array
from ..._dispatch.public.registry import function_named
from .dispatch import implements, sparse_primitive
from .tensors import _values_of, _with_values, as_coo, as_dense, coalesce

_PLUS = ("add", "__add__")
_ZERO_KEEPING = (
    *("abs", "absolute", "angle", "arcsin", "arcsinh", "arctan", "arctanh", "asin", "asinh", "atan", "atanh", "ceil"),
    *("deg2rad", "erf", "erfinv", "expm1", "floor", "frac", "isinf", "isnan", "isneginf", "isposinf", "log1p"),
    *("positive", "rad2deg", "relu", "round", "sgn", "sign", "signbit", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
    *("nan_to_num", "conj_physical", "square"),
)
"""Functions of one tensor that map zero to zero: of the values alone."""


def _place_of(array: Any) -> Device:
    """The device that an array is on."""
    backend = backend_of_array(array)
    if backend.device_type == "cpu":
        return CPU
    ordinal = getattr(backend, "ordinal", None)
    return usable_device(backend.device_type if ordinal is None else Device(backend.device_type, ordinal))


def on_values(array: Any, function: Callable[..., Any], *args: Any) -> Any:
    """A sparse array with `function`, which takes dense tensors, of its values."""
    with recording(False):
        return array.with_values(function(wrap(array.values, _place_of(array.values)), *args)._array)


# ----- numbers -----------------------------------------------------------------------------------------------------


def _conjugate(number: Any) -> Any:
    return number.conjugate() if isinstance(number, complex) else number


@sparse_primitive("MulBackward0", self=lambda grad, factor: grad * _conjugate(factor))
def _scale(self: Array, factor: Any) -> Array:
    return on_values(self, operator.mul, factor)


@sparse_primitive("DivBackward0", self=lambda grad, divisor: grad / _conjugate(divisor))
def _shrink(self: Array, divisor: Any) -> Array:
    return on_values(self, operator.truediv, divisor)


@sparse_primitive("NegBackward0", self=lambda grad: -grad)
def _negate(self: Array) -> Array:
    return on_values(self, operator.neg)


@implements("neg", "negative", "__neg__")
def neg(input: Any) -> Any:
    return _negate(input)


# ----- sums --------------------------------------------------------------------------------------------------------


def _merged(left: CooArray, right: CooArray) -> CooArray:
    """The sum of two arrays: sorted if both are, otherwise laid end to end, as long as that does not pile up."""
    if left.nnz == right.nnz and (left.indices is right.indices or read((left.indices == right.indices).all())):
        return left.with_values(left.values + right.values)
    indices = np.concatenate((left.indices, right.indices), axis=1)
    values = np.concatenate((left.values, right.values))
    array = CooArray(indices, values, left.shape)
    full = array.nnz > math.prod(left.shape[: left.sparse_dim])
    return coalesced_array(array) if full or (left.coalesced and right.coalesced) else array


@sparse_primitive("AddBackward0", self=lambda grad: grad, other=lambda grad, alpha: _times(grad, _conjugate(alpha)))
def _add_sparse(self: Array, other: Array, alpha: Any) -> Array:
    left, right = as_coo(self), as_coo(other)
    right = right if alpha == 1 else right.with_values(_multiplied(right.values, alpha))
    if left.sparse_dim != right.sparse_dim:
        raise RuntimeError(
            f"cadd operands have incompatible desc: sparse dimensions {left.sparse_dim} and {right.sparse_dim}"
        )
    result = _merged(left, right)
    return self.like(result)


@sparse_primitive("AddBackward0", self=lambda grad: grad, other=lambda grad, alpha: _times(grad, _conjugate(alpha)))
def _add_to_dense(self: Array, other: Array, alpha: Any) -> Array:
    result = self.copy()
    _add_into(result, other, alpha)
    return result


def _times(value: Any, alpha: Any) -> Any:
    return value if alpha == 1 else value * alpha


def _multiplied(values: Any, alpha: Any) -> Any:
    return (values * values.dtype.type(alpha)).astype(values.dtype, copy=False)


def _add_into(array: Any, other: Any, alpha: Any) -> None:
    """Add a sparse array to a dense one, where that has elements."""
    places = coalesced_array(other.by_coordinates(coalesced=False))
    if not places.nnz:
        return
    values = places.values if alpha == 1 else _multiplied(places.values, alpha)
    if places.sparse_dim:
        array[each_row(places.indices)] += values
    else:
        array += values[0]


def _check_same_size(left: Any, right: Any) -> None:
    if left.shape != right.shape:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(left.shape)} while other has "
            f"size {list(right.shape)} (FYI: dense-sparse addition does not currently support broadcasting)"
        )


@implements(*_PLUS)
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    if not isinstance(other, SparseTensor) and not (isinstance(input, SparseTensor) and input.layout is not COO):
        raise RuntimeError(
            "add(sparse, dense) is not supported. Use add(dense, sparse) instead. Here, a sparse tensor of shape "
            f"{list(input.shape)} would have to hold every element"
        )
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        raise RuntimeError(f"add: a sparse tensor and a number, {input if is_number(input) else other}")
    if not isinstance(other, SparseTensor):
        input, other = other, input
        if alpha != 1:
            input = input * alpha
            alpha = 1
    _check_same_size(input, other)
    common = result_type_of(input, other)
    if isinstance(alpha, float) and common.category < FLOAT:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    input, other = (each if each.dtype is common else each.to(common) for each in (input, other))
    if isinstance(input, SparseTensor):
        if input.layout is not other.layout:
            other = other.to_sparse(layout=input.layout)
        return _add_sparse(input, other, alpha)
    return _add_to_dense(input, other, alpha)


@implements("__radd__")
def radd(input: Any, other: Any) -> Any:
    return add(other, input) if isinstance(other, Tensor) else add(input, other)


@implements("sub", "subtract")
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return add(input, other, alpha=-alpha)


@implements("rsub", "__rsub__")
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return add(other, input, alpha=-alpha) if isinstance(other, Tensor) else add(input, other)


# ----- products ----------------------------------------------------------------------------------------------------


def _mul_left(grad: Tensor, other: Tensor) -> Any:
    return mul(grad, _conj(other))


def _mul_right(grad: Tensor, self: Tensor) -> Any:
    return mul(grad, _conj(self))


def _mul_dense_right(grad: Tensor, self: Tensor) -> Tensor:
    return as_dense(_mul_right(grad, self))


@sparse_primitive("MulBackward0", self=_mul_left, other=_mul_right)
def _mul_sparse(self: Array, other: Array) -> Array:
    left, right = as_coo(self), coalesced_array(as_coo(other))
    if left.sparse_dim != right.sparse_dim:
        raise RuntimeError(f"mul: sparse dimensions {left.sparse_dim} and {right.sparse_dim} differ")
    places, found = positions_in(flat_indices(right.indices, right.shape), flat_indices(left.indices, left.shape))
    kept = np.flatnonzero(found)
    values = left.values[kept] * right.values[places[kept]]
    result = CooArray(np.take(left.indices, kept, axis=1), values, left.shape, left.coalesced)
    return self.like(result)


@sparse_primitive("MulBackward0", self=_mul_left, other=_mul_dense_right)
def _mul_dense(self: Array, other: Array) -> Array:
    """A sparse array times a dense one: only the elements that the sparse one names can differ from zero."""
    places = as_coo(self)
    factors = np.broadcast_to(other, self.shape)
    return self.with_values(self.values * (factors[each_row(places.indices)] if places.sparse_dim else factors[None]))


def _conj(value: Any) -> Any:
    if not value.is_complex():
        return value
    return _conj_sparse(value) if isinstance(value, SparseTensor) else value.conj()


@implements("conj")
def conj(input: Any) -> Any:
    return _conj(input)


@sparse_primitive("ConjBackward0", self=lambda grad: _conj(grad))
def _conj_sparse(self: Array) -> Array:
    return self.with_values(np.conj(self.values))


def _is_single(value: Any) -> bool:
    return isinstance(value, Tensor) and not isinstance(value, SparseTensor) and value._array.ndim == 0


@implements("mul", "multiply", "__rmul__")
def mul(input: Any, other: Any) -> Any:
    if not isinstance(input, Tensor) or _is_single(input):
        input, other = other, input
    if not isinstance(other, Tensor):
        return _scale(input, other) if isinstance(input, SparseTensor) else input * other
    if not isinstance(input, SparseTensor):
        if not isinstance(other, SparseTensor):
            return input * other
        input, other = other, input
    common = result_type_of(input, other)
    input, other = (each if each.dtype is common else each.to(common) for each in (input, other))
    if isinstance(other, SparseTensor):
        if input.shape != other.shape:
            raise RuntimeError(
                f"mul operands have incompatible sizes: {list(input.shape)} and {list(other.shape)}; sparse tensors "
                "are not broadcast"
            )
        return _mul_sparse(input, other)
    try:
        shape = joint_shape(tuple(input.shape), tuple(other.shape))
    except ValueError:
        shape = ()
    if shape != tuple(input.shape):
        raise RuntimeError(
            f"mul: a dense tensor of shape {list(other.shape)} cannot be expanded to that of the sparse one, "
            f"{list(input.shape)}"
        )
    return _mul_dense(input, other)


@implements("div", "divide", "true_divide")
def div(input: Any, other: Any, *, rounding_mode: Any = None) -> Any:
    if isinstance(other, SparseTensor) or not isinstance(input, SparseTensor):
        raise RuntimeError(
            "A Sparse Tensor can only be divided by a scalar or zero-dim dense tensor, and divides nothing"
        )
    if isinstance(other, Tensor) and not _is_single(other):
        raise RuntimeError(
            f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(other.shape)} for "
            "divisor)"
        )
    if rounding_mode is None:
        return _mul_dense(input, 1 / other) if isinstance(other, Tensor) else _shrink(input, other)
    return through_values(function_named("", "div"), coalesce(input), other, rounding_mode=rounding_mode)


# ----- functions that keep zeros -----------------------------------------------------------------------------------


def through_values(function: Callable[..., Any], input: Any, *args: Any, **kwargs: Any) -> Any:
    """`function`, which maps zero to zero, of a coalesced tensor: recorded on its values."""
    return _with_values(input.detach(), function(_values_of(input), *args, **kwargs))


def _coalesced(input: Any) -> Tensor:
    return coalesce(input) if input.layout is COO else input


def _keeps_zero(name: str) -> None:
    def run(input: Any, *args: Any, **kwargs: Any) -> Any:
        return through_values(function_named("", name), _coalesced(input), *args, **kwargs)

    run.__name__ = name
    implements(name)(run)


for _name in _ZERO_KEEPING:
    _keeps_zero(_name)


@implements("nn.functional.relu")
def functional_relu(input: Any, inplace: bool = False) -> Tensor:
    made = through_values(function_named("", "relu"), _coalesced(input))
    return become(input, made, "relu") if inplace else made


@implements("pow", "float_power")
def pow(input: Any, exponent: Any) -> Any:
    if not is_number(exponent) or isinstance(exponent, complex) or exponent <= 0:
        raise NotImplementedError(
            f"pow of a sparse tensor: the exponent must be a positive number, not {exponent!r}; zeros would not stay "
            "zero"
        )
    return through_values(function_named("", "pow"), _coalesced(input), exponent)


# ----- in place ----------------------------------------------------------------------------------------------------


def become(target: Tensor, result: Any, name: str) -> Tensor:
    """Give a sparse tensor the content, and the history, of another."""
    if not isinstance(result, SparseTensor) or target.layout is not result.layout:
        raise RuntimeError(f"{name}_: the result is not of the layout of the tensor, {target.layout}")
    if target.shape != result.shape:
        raise RuntimeError(f"{name}_: shapes {list(target.shape)} and {list(result.shape)} differ")
    check_writable(target, result.requires_grad)
    check_castable(result.dtype, target.dtype, name)
    if result.dtype is not target.dtype:
        result = result.to(target.dtype)
    target._array.take(result._array)
    end_change(target, result._grad_fn, result._output_nr)
    return target


def _in_place(function: Callable[..., Any], *names: str) -> None:
    def run(input: Any, *args: Any, **kwargs: Any) -> Tensor:
        if not isinstance(input, SparseTensor):
            raise NotImplementedError(
                f"{names[0]} of a dense tensor of shape {list(input.shape)} and a sparse one: most elements would be "
                "zero. Use the out-of-place form, or .to_dense()"
            )
        return become(input, function(input, *args, **kwargs), names[0].strip("_"))

    implements(*names)(run)


_in_place(mul, "mul_", "multiply_", "__imul__")
_in_place(div, "div_", "divide_", "true_divide_", "__itruediv__")
_in_place(neg, "neg_", "negative_")
_in_place(pow, "pow_", "__ipow__")


@implements("add_")
def add_(input: Any, other: Tensor, *, alpha: Any = 1) -> Any:
    if isinstance(input, SparseTensor):
        return become(input, add(input, other, alpha=alpha), "add")
    _check_same_size(input, other)
    check_castable(result_type_of(input, other), input.dtype, "add")
    check_writable(input, other.requires_grad)
    recorded = THREAD.modes.grad and (input.requires_grad or other.requires_grad)
    if recorded or input._kind.plain is not input._kind:
        adopt(input, add(before_change(input, (other,), {}), other, alpha=alpha), "add")
        return input
    if other.dtype is not input.dtype:
        other = other.to(input.dtype)
    _add_into(input._array, other._array, alpha)
    end_change(input)
    return input


@implements("sub_", "subtract_")
def sub_(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return add_(input, other, alpha=-alpha)


@implements("zero_")
def zero_(input: Any) -> Any:
    check_writable(input)
    if input.layout is not COO:
        raise NotImplementedError(f"zero_ of a tensor of layout {input.layout} is not implemented")
    input._array.take(no_elements(input._array, input._array.dtype))
    end_change(input)
    return input


@implements("copy_")
def copy_(input: Any, src: Any, non_blocking: bool = False) -> Tensor:
    if not isinstance(src, Tensor):
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
    if not (isinstance(input, SparseTensor) and isinstance(src, SparseTensor)):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{input._kind.legacy_name} and src type = {src._kind.legacy_name}"
        )
    if input.layout is not src.layout or input.shape != src.shape:
        raise RuntimeError(
            f"copy_: {list(input.shape)} and {list(src.shape)} in layouts {input.layout} and {src.layout}"
        )
    return become(input, src.clone().to(input.dtype), "copy")
