"""softmax and its relatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.backend import as_array
from ..._core.dtype import FLOAT, LEGACY_NAMES, float32
from ..._core.geometry.layout import contiguous_array
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL, FULL_RESULT, on
from ..._dispatch.arguments.precision import as_floating, in_single
from ..._dispatch.axes import Along
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from ..create.constants import as_dtype
from ..pointwise.binary import conj
from ..shape.view import wrap_dim
from .reductions import Dims, reduced, reduced_dims, restore_dims


def _softmax_gradient(grad: Tensor, output: Tensor, dim: int) -> Tensor:
    return _softmax_backward(grad, output, dim)


@primitive(
    "SoftmaxBackwardDataBackward0",
    axes=Along("dim"),
    self=_softmax_gradient,
    output=lambda grad, self, output, dim: (
        grad * (self - (self * output).sum(dim, keepdim=True)) - self * (grad * output).sum(dim, keepdim=True)
    ),
)
@in_single
def _softmax_backward(self: Array, output: Array, dim: int) -> Array:
    product = self * output
    if not product.ndim:
        return product - output * product  # zero, unless the result was changed by its data
    return product - output * reduced(np.add, product, (dim,), True)


@primitive(
    "LogSoftmaxBackwardDataBackward0",
    axes=Along("dim"),
    self=lambda grad, output, dim: grad - (grad * output.exp()).sum(dim, keepdim=True),
    output=lambda grad, self, output, dim: -grad * output.exp() * self.sum(dim, keepdim=True),
)
@in_single
def _log_softmax_backward(self: Array, output: Array, dim: int) -> Array:
    if not self.ndim:
        return self - np.exp(output) * self
    return self - np.exp(output) * reduced(np.add, self, (dim,), True)


@primitive(
    "SoftmaxBackward0",
    axes=Along("dim"),
    self=lambda grad, result, dim: _softmax_backward(grad, result, dim),
    fuses=False,
)
@in_single
def _softmax(self: Array, dim: int) -> Array:
    if not self.size:
        return np.empty(self.shape, self.dtype, like=self)
    if not self.ndim:
        return self - self + 1
    powers = np.subtract(self, np.maximum.reduce(self, axis=dim, keepdims=True), order="C")
    np.exp(powers, powers)
    powers /= reduced(np.add, powers, (dim,), True)
    return powers


@primitive(
    "LogSoftmaxBackward0",
    axes=Along("dim"),
    self=lambda grad, result, dim: _log_softmax_backward(grad, result, dim),
    fuses=False,
)
@in_single
def _log_softmax(self: Array, dim: int) -> Array:
    if not self.size:
        return np.empty(self.shape, self.dtype, like=self)
    if not self.ndim:
        return self - self
    shifted = np.subtract(self, np.maximum.reduce(self, axis=dim, keepdims=True), order="C")
    shifted -= np.log(reduced(np.add, np.exp(shifted), (dim,), True))
    return shifted


def _prepared(name: str, input: Tensor, dtype: Any) -> Tensor:
    """An input that is no ordinary one: converted if that is asked for, refused if there is no kernel for it."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    if dtype is not None and dtype is not input.dtype:
        input = input.to(as_dtype(dtype, name))
    if input._kind.dtype.category != FLOAT and input._array.size:
        raise NotImplementedError(f'"{name}_lastdim_kernel_impl" not implemented for {LEGACY_NAMES[input.dtype]!r}')
    return input


@public("special.softmax", out=True, autocast=on(cuda=FULL_RESULT))
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`exp(input) / exp(input).sum(dim)`: positive numbers along `dim` whose sum is 1."""
    if dtype is not None or type(input) is not Tensor or input._kind.dtype.category != FLOAT:
        input = _prepared("softmax", input, dtype)
    return _softmax(input, wrap_dim(dim, input._array.ndim))


@public("special.log_softmax", out=True, autocast=on(cuda=FULL_RESULT))
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`, computed in one go."""
    if dtype is not None or type(input) is not Tensor or input._kind.dtype.category != FLOAT:
        input = _prepared("log_softmax", input, dtype)
    return _log_softmax(input, wrap_dim(dim, input._array.ndim))


@public("ops.aten._softmax_backward_data", method=False)
def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of the input of `softmax`, from that of its result and the result itself."""
    dim = wrap_dim(dim, grad_output._array.ndim)
    if grad_output._array.shape != output._array.shape:
        raise RuntimeError(
            "Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 'output'; but "
            f"{list(grad_output.shape)} does not equal {list(output.shape)} (while checking arguments for "
            "softmax_backward)"
        )
    if grad_output._kind.dtype.category != FLOAT:
        kernel = "softmax_backward_lastdim_kernel_impl"
        raise NotImplementedError(f'"{kernel}" not implemented for {LEGACY_NAMES[grad_output.dtype]!r}')
    found = output.dtype if output.dtype is not grad_output.dtype else input_dtype
    if found is not grad_output.dtype and not (found is float32 and grad_output.dtype.itemsize == 2):
        raise RuntimeError(
            f"expected scalar type {LEGACY_NAMES[grad_output.dtype]} but found {LEGACY_NAMES[found]} (in "
            "_softmax_backward_data)"
        )
    return _softmax_backward(grad_output, output, dim)


def _implicit_dim(name: str, input: Tensor, stacklevel: int) -> int:
    import warnings

    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=stacklevel + 2,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


_MEANINGS = {
    "softmax": "`exp(input) / exp(input).sum(dim)`: positive numbers along `dim` whose sum is 1.",
    "log_softmax": "The logarithm of `softmax` along `dim`, computed in one go, which is more accurate.",
    "softmin": "`softmax(-input)` along `dim`: the smallest elements get the largest results.",
}


def _functional(name: str, op: Callable[..., Tensor], of: str, negated: bool = False) -> Callable[..., Tensor]:
    def function(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
        if dim is None:
            dim = _implicit_dim(name, input, _stacklevel)
        if negated:
            input = -input
        if dtype is not None or type(input) is not Tensor or input._kind.dtype.category != FLOAT:
            input = _prepared(of, input, dtype)
        return op(input, wrap_dim(dim, input._array.ndim))

    function.__doc__ = _MEANINGS[name]
    public(f"nn.functional.{name}", function=False, method=False, name=name, autocast=on(cuda=FULL_RESULT))(function)
    return function


_functional("softmax", _softmax, "softmax")
_functional("log_softmax", _log_softmax, "log_softmax")
_functional("softmin", _softmax, "softmax", negated=True)


def _logsumexp_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    whole, spread = (restore_dims(each, dim, keepdim) for each in (result, grad))
    return spread * conj((self - whole).exp())


@primitive("LogsumexpBackward0", axes=Along("dim"), self=_logsumexp_gradient)
@in_single
def _logsumexp(self: Array, dim: tuple[int, ...], keepdim: bool) -> Array:
    if not self.size:
        total = np.log(np.add.reduce(np.exp(self), axis=dim, keepdims=True))
        return total if keepdim else np.squeeze(total, dim)
    highest = np.maximum.reduce(self.real, axis=dim, keepdims=True) if self.ndim else self.real
    highest = np.where(np.isinf(highest), 0, highest).astype(highest.dtype)
    powers = np.exp(np.subtract(self, highest, order="C"))
    total = contiguous_array(as_array(np.log(reduced(np.add, powers, dim, True)) + highest))
    return total if keepdim or not self.ndim else np.squeeze(total, dim)


@public("special.logsumexp", out=write_out, autocast=on(cuda=FULL))
def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials along `dim`."""
    floating = as_floating(input)
    return _logsumexp(floating, reduced_dims(dim, input._array.ndim), keepdim)
