"""Normal numbers by the method of Box and Muller on blocks of 16, as PyTorch makes 16 or more of them on the CPU.

In float32 PyTorch uses the C library's float functions (with AVX2, polynomials of its own). So does NumPy, if asked
in the right way: the exponential function of an imaginary complex64 number is that library's float cosine and sine,
and the float32 logarithm is that library's except on x86, where NumPy has its own. There the logarithm is taken in
float64 and rounded once.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]
    Float64s = npt.NDArray[np.float64]

NORMAL_BLOCK = 16
_CHUNK = 8192
"""Long computations run over pieces of this many numbers, whose intermediate results stay in the cache."""
_LOGARITHM_TYPE = np.float64 if platform.machine().lower() in ("x86_64", "amd64", "i386", "i686") else np.float32


def normal_blocks(
    units: Callable[[int], Array], size: int, mean: float, std: float, *, spare_draws: bool = True
) -> Array:
    """`size` >= 16 normal numbers: 8 pairs at a time, and a last block that ends with the array.

    When `size` is no multiple of 16, the last 16 numbers are made again from fresh draws. In float32 and float64 the
    overwritten numbers have used their draws up (`spare_draws`); in the 2-byte types they have not.
    """
    remainder = size % NORMAL_BLOCK
    whole = size - remainder
    if not remainder:
        return _box_muller(units(size), mean, std)
    drawn = units((size if spare_draws else whole) + NORMAL_BLOCK)
    drawn[whole : whole + NORMAL_BLOCK] = drawn[-NORMAL_BLOCK:]
    values = _box_muller(drawn[: whole + NORMAL_BLOCK], mean, std)
    values[size - NORMAL_BLOCK : size] = values[-NORMAL_BLOCK:].copy()
    return values[:size]


def _box_muller(units: Array, mean: float, std: float) -> Array:
    """Normal numbers from uniform ones: in each 16, the first 8 give the radii, the last 8 the angles."""
    values = np.empty_like(units)
    single = units.dtype == np.float32
    transform = _transform32 if single else _transform64
    for start in range(0, len(units), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        transform(units[chunk].reshape(-1, 2, 8), values[chunk].reshape(-1, 2, 8))
    if single:
        return multiply_add32(values, np.float32(std), np.float32(mean))
    return multiply_add(values, std, mean)


def _transform64(pairs: Array, values: Array) -> None:
    theta = pairs[:, 1] * (2.0 * math.pi)
    radius = np.sqrt(np.log(1 - pairs[:, 0]) * -2.0)
    np.multiply(radius, np.cos(theta), out=values[:, 0])
    np.multiply(radius, np.sin(theta), out=values[:, 1])


def _transform32(pairs: Array, values: Array) -> None:
    angles = np.zeros((len(pairs), 8), np.complex64)
    angles.imag = pairs[:, 1] * np.float64(2.0 * math.pi)
    np.exp(angles, out=angles)
    logarithm = np.log((1 - pairs[:, 0]).astype(_LOGARITHM_TYPE, copy=False)).astype(np.float32, copy=False)
    radius = np.sqrt(logarithm * np.float32(-2))
    np.multiply(radius, angles.real, out=values[:, 0])
    np.multiply(radius, angles.imag, out=values[:, 1])


# A product and a sum, rounded once ------------------------------------------------------------------------------------


def multiply_add32(x: npt.NDArray[np.float32], scale: np.float32, offset: np.float32) -> npt.NDArray[np.float32]:
    """x * scale + offset in float32, rounded once: float64 holds the product exactly."""
    if offset == 0:
        return x if scale == 1 else x * scale
    wide = x * np.float64(scale)
    wide += float(offset)
    return wide.astype(np.float32)


def multiply_add(x: Float64s, scale: float, offset: float) -> Float64s:
    """x * scale + offset in float64, rounded once."""
    if offset == 0.0:
        return x if scale == 1.0 else x * scale
    if math.frexp(scale)[0] == 0.5:
        return x * scale + offset  # a power of two: the product is exact
    result = np.empty_like(x)
    for start in range(0, len(x), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        result[chunk] = fused(x[chunk], scale, offset)
    return result


def fused(x: Float64s, scale: float | Float64s, offset: float) -> Float64s:
    """x * scale + offset with the rounding errors of both steps (Dekker's product, Knuth's sum) added back."""
    product = x * scale
    total = product + offset
    x_high, x_low = _halves(x)
    scale_high, scale_low = _halves(scale)
    product_error = ((x_high * scale_high - product) + x_high * scale_low + x_low * scale_high) + x_low * scale_low
    back = total - product
    sum_error = (product - (total - back)) + (offset - back)
    result: Float64s = total + (sum_error + product_error)
    return result


def _halves(x: Any) -> tuple[Any, Any]:
    """Two numbers of 26 bits each whose sum is `x`."""
    spread = x * 134217729.0  # 2**27 + 1
    high = spread - (spread - x)
    return high, x - high
