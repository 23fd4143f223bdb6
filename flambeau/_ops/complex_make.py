"""Complex tensors from real ones: by parts, and by length and angle."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.dtype import LEGACY_NAMES, float16, float32, float64
from .._core.tensor import Tensor
from .dispatch import Array, primitive
from .registry import public


def _check_pair(first: Tensor, second: Tensor) -> None:
    for each in (first, second):
        if not isinstance(each, Tensor):
            raise TypeError(f"complex(): both arguments must be Tensor, not {type(each).__name__}")
    names = LEGACY_NAMES[first.dtype], LEGACY_NAMES[second.dtype]
    if not {first.dtype, second.dtype} <= {float16, float32, float64}:
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} and {names[1]}"
        )
    if first.dtype is not second.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second argument"
        )


def _complex_type(array: Any) -> Any:
    return np.complex128 if array.dtype == np.float64 else np.complex64


@primitive("ComplexBackward0", real=lambda grad: grad.real, imag=lambda grad: grad.imag)
def _complex(real: Array, imag: Array) -> Array:
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), _complex_type(real))
    result.real = real
    result.imag = imag
    return result


@public(method=False, out=True, name="complex")
def complex_(real: Tensor, imag: Tensor) -> Tensor:
    """`real + 1j * imag`.

    >>> flambeau.complex(flambeau.tensor([1.0]), flambeau.tensor([2.0]))
    tensor([1.+2.j])
    """
    _check_pair(real, imag)
    return _complex(real, imag)  # type: ignore[no-any-return]


@primitive(
    "PolarBackward0",
    abs=lambda grad, result: (grad.conj() * result.sgn()).real,
    angle=lambda grad, result: (grad.conj() * (result * 1j)).real,
)
def _polar(abs: Array, angle: Array) -> Array:
    result = np.empty(np.broadcast_shapes(abs.shape, angle.shape), _complex_type(abs))
    result.real = abs * np.cos(angle)
    result.imag = abs * np.sin(angle)
    return result


@public(method=False, out=True)
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """The complex numbers of the given lengths and angles."""
    _check_pair(abs, angle)
    if abs.dtype is float16:
        raise RuntimeError("Expected both inputs to be Float or Double tensors but got Half and Half")
    return _polar(abs, angle)  # type: ignore[no-any-return]
