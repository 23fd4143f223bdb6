"""Means and deviations along dimensions: what the normalisations share, in the kernel and in the derivative."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.backend import is_array
from ..._core.dtype import FLOAT, LEGACY_NAMES, float32
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import Tensor

Dims = tuple[int, ...]


def widened(array: Any) -> Any:
    """A half-precision array as float32, in which its statistics are computed; any other as it is."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


def widened_tensor(tensor: Any) -> Any:
    """A half-precision tensor as float32, for derivatives; None and arrays pass unchanged."""
    if tensor is None or is_array(tensor) or tensor._kind.dtype.itemsize != 2:
        return tensor
    return tensor.to(float32)


def _kept_sum(array: Any, dims: Dims) -> Any:
    if REPRODUCIBILITY.total is not None and type(array) is np.ndarray:
        return REPRODUCIBILITY.total(array, dims, True)
    return np.add.reduce(array, dims, keepdims=True)


def sum_of_samples(values: Any, dims: Dims) -> Any:
    """The sum of an array or a tensor along `dims`, of which the first are those of the batch."""
    if REPRODUCIBILITY.total is not None and type(values) is np.ndarray:
        return REPRODUCIBILITY.total(values, dims, False)
    return values.sum(dims)


def mean_square(array: Any, dims: Dims) -> Any:
    """The mean of the squares along `dims`, which it keeps."""
    return _kept_sum(array * array, dims) / array.dtype.type(math.prod([array.shape[each] for each in dims]))


def centred(array: Any, dims: Dims) -> tuple[Any, Any, Any]:
    """A new array less its mean along `dims`, that mean, and the mean of the squares; the last two keep `dims`."""
    count = array.dtype.type(math.prod([array.shape[each] for each in dims]))
    mean = _kept_sum(array, dims) / count
    rest = array - mean
    variance = _kept_sum(rest * rest, dims) / count
    return rest, mean, variance


def standardised_gradient(grad: Any, of_mean: Any, of_rstd: Any, x: Tensor, mean: Any, rstd: Any, dims: Dims) -> Any:
    """The gradient of `x` from those of `(x - mean) * rstd`, of `mean` and of `rstd`; None stands for zero.

    `mean` and `rstd` are results of the forward pass and keep the dimensions along which they were taken. In a second
    derivative their gradients arrive here again, as `of_mean` and `of_rstd`.
    """
    count = max(math.prod([x.shape[each] for each in dims]), 1)
    standard = (x - mean) * rstd
    total = None
    if grad is not None:
        mean_grad = grad.sum(axis=dims, keepdims=True) / count
        along = (grad * standard).sum(axis=dims, keepdims=True) / count
        total = (grad - mean_grad - standard * along) * rstd
    if of_mean is not None:
        spread = (of_mean / count).expand(x._array.shape)
        total = spread if total is None else total + spread
    if of_rstd is not None:
        stretched = standard * (of_rstd * rstd * rstd / -count)
        total = stretched if total is None else total + stretched
    return total


def check_parameters(name: str, input: Tensor, *parameters: Tensor | None) -> Any:
    """The NumPy type in which statistics are kept: that of `input`, or float32 for half precision with float32
    parameters; no other mixture is allowed. `name` is PyTorch's for the kernel.
    """
    kind = input._kind
    for each in parameters:
        if each is not None and each._kind is not kind:
            break
    else:
        if kind.dtype.category == FLOAT:  # the ordinary case
            return input._array.dtype
    given = [each for each in parameters if each is not None]
    if not given or given[0]._kind.dtype is kind.dtype:
        for each in given:
            if each._kind.dtype is not kind.dtype:
                raise RuntimeError(
                    f"expected scalar type {LEGACY_NAMES[kind.dtype]} but found {LEGACY_NAMES[each._kind.dtype]}: a "
                    f"parameter of {name} has another dtype than its input"
                )
    elif any(each._kind.dtype is not float32 for each in given):
        raise RuntimeError(
            f"mixed dtype (CPU): expect parameter to have scalar type of Float: {name} has input of {input.dtype} and "
            f"parameters of {', '.join(str(each.dtype) for each in given)}"
        )
    elif kind.dtype.itemsize != 2 and kind.dtype.category == FLOAT:
        raise RuntimeError(
            f"mixed dtype (CPU): all inputs must share same datatype. {name} has input of {input.dtype} and "
            f"parameters of {given[0].dtype}"
        )
    if kind.dtype.category != FLOAT:
        raise NotImplementedError(f'"{name}" not implemented for {LEGACY_NAMES[kind.dtype]!r}')
    return (given[0] if given else input)._array.dtype
