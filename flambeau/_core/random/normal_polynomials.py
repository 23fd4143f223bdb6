"""The logarithm, sine and cosine with which PyTorch makes float32 normal numbers on x86-64, bit for bit.

They are the Cephes library's approximations for four-byte numbers. Where a product is exact (the whole number of an
exponent or of an octant times a constant of few bits, a half) an ordinary sum rounds as the fused one would.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .fused_multiply_add import fused32

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]
    Float32s = npt.NDArray[np.float32]

LOGARITHM = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
SINE = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COSINE = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
"""Coefficients, that of the highest power first."""
LOG_2 = (0.693359375, -2.12194440e-4)
QUARTER_PI = (0.78515625, 2.4187564849853515625e-4, 3.77489497744594108e-8)
"""Sums of numbers of which all but the last have few bits."""


def transform_by_polynomials(pairs: Array, values: Array) -> None:
    """Normal numbers from uniform ones: `pairs` and `values` have the shape (blocks, 2, 8)."""
    radius = np.sqrt(logarithm(1 - pairs[:, 0]) * np.float32(-2))
    sine, cosine = sine_and_cosine(pairs[:, 1] * np.float32(2 * math.pi))
    np.multiply(radius, cosine, out=values[:, 0])
    np.multiply(radius, sine, out=values[:, 1])


def logarithm(x: Float32s) -> Float32s:
    """The logarithm of positive normal numbers."""
    bits = x.view(np.int32)
    exponent = (bits >> 23) - 126
    part = ((bits & 0x7FFFFF) | 0x3F000000).view(np.float32)  # from 0.5 to 1
    low = part < np.float32(math.sqrt(0.5))
    exponent = (exponent - low).astype(np.float32)
    part = (part - np.float32(1)) + np.where(low, part, np.float32(0))
    square = part * part
    value = fused32(_polynomial(LOGARITHM, part) * part, square, exponent * np.float32(LOG_2[1]))
    value = part + (value - square * np.float32(0.5))
    return value + exponent * np.float32(LOG_2[0])


def sine_and_cosine(angle: Float32s) -> tuple[Float32s, Float32s]:
    """The sine and the cosine of angles from 0 to 2 pi."""
    octant = ((angle * np.float32(4 / math.pi)).astype(np.int32) + 1) & ~1
    turns = octant.astype(np.float32)
    rest = (angle - turns * np.float32(QUARTER_PI[0])) - turns * np.float32(QUARTER_PI[1])
    rest = fused32(turns, np.float32(-QUARTER_PI[2]), rest)
    square = rest * rest
    sine = fused32(_polynomial(SINE, square) * square, rest, rest)
    cosine = fused32(_polynomial(COSINE, square) * square, square, square * np.float32(-0.5)) + np.float32(1)
    swapped = (octant & 2) != 0
    first, second = np.where(swapped, cosine, sine), np.where(swapped, sine, cosine)
    np.negative(first, out=first, where=(octant & 4) != 0)
    np.negative(second, out=second, where=((octant + 2) & 4) != 0)
    return first, second


def _polynomial(coefficients: tuple[float, ...], x: Float32s) -> Float32s:
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = fused32(value, x, np.float32(coefficient))
    return value
