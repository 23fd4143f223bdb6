"""Complex tensors from real ones: by parts, and by length and angle."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.arrays.quick import joint_shape
from ..._core.backend import as_array
from ..._core.dtype import LEGACY_NAMES, float16, float32, float64, from_numpy_dtype
from ..._core.geometry.layout import arranged
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL, on
from ..._dispatch.axes import ELEMENTS
from ..._dispatch.changes.out import store
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.registry import public


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


def _joined(real: Any, imag: Any) -> Any:
    real, imag = as_array(real), as_array(imag)
    pairs = np.empty((*joint_shape(real.shape, imag.shape), 2), real.dtype, like=real)
    pairs[..., 0] = real
    pairs[..., 1] = imag
    return arranged(pairs.view(from_numpy_dtype(real.dtype).to_complex().numpy)[..., 0], real, imag)


@primitive("ComplexBackward0", axes=ELEMENTS, real=lambda grad: grad.real, imag=lambda grad: grad.imag)
def _complex(real: Array, imag: Array) -> Array:
    return _joined(real, imag)


def _delivered(result: Tensor, out: Tensor | None) -> Tensor:
    if out is None:
        return result
    if isinstance(out, Tensor) and out.dtype is not result.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {LEGACY_NAMES[result.dtype]} but got scalar type "
            f"{LEGACY_NAMES[out.dtype]} for argument 'out'"
        )
    return store(result, out)


@public(method=False, name="complex")
def complex_(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`real + 1j * imag`."""
    _check_pair(real, imag)
    return _delivered(_complex(real, imag), out)


@primitive(
    "PolarBackward0",
    axes=ELEMENTS,
    abs=lambda grad, result: (grad.conj() * result.sgn()).real,
    angle=lambda grad, result: (grad.conj() * (result * 1j)).real,
)
def _polar(abs: Array, angle: Array) -> Array:
    return arranged(_joined(abs * np.cos(angle), abs * np.sin(angle)), abs, angle)


@public(method=False, autocast=on(cpu=FULL))
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex numbers of the given lengths and angles."""
    _check_pair(abs, angle)
    if abs.dtype is float16:
        raise RuntimeError("Expected both inputs to be Float or Double tensors but got Half and Half")
    return _delivered(_polar(abs, angle), out)
