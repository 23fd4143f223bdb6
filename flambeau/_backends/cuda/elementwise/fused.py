"""Ops of a few elementwise steps as one kernel each. None: the reference runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..arrays.array import DeviceArray
from .pointwise import Pointwise, pointwise

_BOOL, _SINGLE, _DOUBLE = np.dtype(bool), np.dtype(np.float32), np.dtype(np.float64)


@cache
def _masked(dtype: np.dtype[Any]) -> Pointwise | None:
    """An array times a mask times a number."""
    number = _DOUBLE if dtype == _DOUBLE else _SINGLE
    return pointwise(lambda x, mask, scale: x * mask * scale, [dtype, _BOOL, number], dtype)


def dropout(input: DeviceArray, mask: DeviceArray, p: float, train: bool) -> tuple[DeviceArray, DeviceArray] | None:
    """The elements that the mask keeps, scaled up, and the mask."""
    compiled = _masked(input.form.dtype) if train else None
    if compiled is None:
        return None
    return compiled.many(input, mask, 0.0 if p == 1 else 1 / (1 - p))[0], mask


def dropout_backward(grad_output: DeviceArray, mask: DeviceArray, scale: float) -> DeviceArray | None:
    """The gradient of the input of dropout."""
    compiled = _masked(grad_output.form.dtype) if mask.form.dtype == _BOOL else None
    return None if compiled is None else compiled.many(grad_output, mask, scale)[0]


_POWERS: dict[float, Callable[[Any], Any]] = {
    2: np.square, 3: lambda x: np.square(x) * x, 0.5: np.sqrt, -0.5: lambda x: 1 / np.sqrt(x),
}  # fmt: skip
"""Powers that are products, roots and quotients, each rounded."""
_SLOPES: dict[float, Callable[[Any, Any], Any]] = {
    2: lambda grad, x: grad * (2 * x),
    3: lambda grad, x: grad * (3 * np.square(x)),
}
_FULL = (_SINGLE, _DOUBLE)


@cache
def _power(exponent: float, dtype: np.dtype[Any]) -> Pointwise | None:
    return pointwise(_POWERS[exponent], [dtype], dtype)


@cache
def _slope(exponent: float, dtype: np.dtype[Any]) -> Pointwise | None:
    return pointwise(_SLOPES[exponent], [dtype, dtype], dtype)


def pow_number(self: DeviceArray, exponent: Any) -> DeviceArray | None:
    """Lowering of `pow_number` for small powers and roots."""
    dtype = self.form.dtype
    compiled = _power(exponent, dtype) if exponent in _POWERS and dtype in _FULL else None
    return None if compiled is None else compiled.unary(self)


def power_gradient(grad: DeviceArray, self: DeviceArray, exponent: Any) -> DeviceArray | None:
    """Lowering of the derivative of small powers: `grad * exponent * self ** (exponent - 1)`, each step rounded."""
    dtype = grad.form.dtype
    fits = exponent in _SLOPES and dtype in _FULL and dtype == self.form.dtype
    compiled = _slope(exponent, dtype) if fits else None
    return None if compiled is None else compiled.binary(grad, self)
