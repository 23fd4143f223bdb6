"""A product and a sum, rounded once: what the compiler of PyTorch's loops made of `x * y + z`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Float32s = npt.NDArray[np.float32]
    Float64s = npt.NDArray[np.float64]

_CHUNK = 8192
"""Long computations run over pieces of this many numbers, whose intermediate results stay in the cache."""
_BEYOND_FLOAT32 = np.int64(2**29 - 1)
_HALFWAY = np.int64(2**28)
"""The bits of a float64 that a float32 has not, and what they are halfway between two float32 numbers."""


def multiply_add32(x: Float32s, scale: np.float32, offset: np.float32) -> Float32s:
    """x * scale + offset in float32, rounded once."""
    if offset == 0:
        return x * scale + offset  # adding zero rounds nothing, but makes zeros positive
    return fused32(x, scale, offset)


def fused32(x: Float32s, y: Float32s | np.float32, z: Float32s | np.float32) -> Float32s:
    """x * y + z in float32, rounded once.

    float64 holds the product of two float32 numbers exactly, and rounds the sum to 53 bits. Rounding that to 24 bits
    gives what one rounding would have given, unless it looks halfway between two float32 numbers while the exact sum
    lies beside: then it goes by one float64 number to that side first.
    """
    product = np.multiply(x, y, dtype=np.float64)
    total = product + z
    halfway = (total.view(np.int64) & _BEYOND_FLOAT32) == _HALFWAY
    if halfway.any():
        error = _sum_error(product, z, total)
        total = np.where(halfway & (error != 0), np.nextafter(total, np.copysign(np.inf, error)), total)
    return total.astype(np.float32)


def multiply_add(x: Float64s, scale: float, offset: float) -> Float64s:
    """x * scale + offset in float64, rounded once."""
    if offset == 0.0 or math.frexp(scale)[0] == 0.5:
        return x * scale + offset  # nothing to add, or a power of two: the product is exact
    result = np.empty_like(x)
    for start in range(0, len(x), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        result[chunk] = fused(x[chunk], scale, offset)
    return result


def fused(x: Float64s, scale: float | Float64s, offset: float) -> Float64s:
    """x * scale + offset with the rounding errors of both steps (Dekker's product, Knuth's sum) added back.

    The largest numbers cannot be taken apart: they are rounded twice.
    """
    product = x * scale
    total = product + offset
    with np.errstate(over="ignore", invalid="ignore"):
        x_high, x_low = _halves(x)
        scale_high, scale_low = _halves(scale)
        product_error = ((x_high * scale_high - product) + x_high * scale_low + x_low * scale_high) + x_low * scale_low
        result: Float64s = total + (_sum_error(product, offset, total) + product_error)
    return np.where(np.isfinite(result), result, total)


def _sum_error(x: Any, y: Any, total: Any) -> Any:
    """What is missing in the rounded sum `total` of `x` and `y`."""
    back = total - x
    return (x - (total - back)) + (y - back)


def _halves(x: Any) -> tuple[Any, Any]:
    """Two numbers of 26 bits each whose sum is `x`."""
    spread = x * 134217729.0  # 2**27 + 1
    high = spread - (spread - x)
    return high, x - high
