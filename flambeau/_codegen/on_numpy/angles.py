"""Multiples of pi/2 taken away from huge numbers: `functions/trigonometric.py` in Python's integers."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ..functions.coefficients import TWO_OVER_PI
from .fused import fma

Array = Any

_WORDS = 20
_TABLE = [0, *((TWO_OVER_PI >> (64 * place)) & (2**64 - 1) for place in reversed(range(_WORDS)))]
_WORD = 2**64 - 1


def reduced(x: Array, half_pi: float, half_pi_low: float) -> tuple[Array, Array, Array]:
    """n, and the two parts of r, of an array of float64."""
    found = [_digits(float(each)) for each in x.ravel()]
    quadrant, high, low = (np.array(each).reshape(x.shape) for each in zip(*found, strict=True))
    angle = high * half_pi
    pi, low_pi = np.full_like(high, half_pi), np.full_like(high, half_pi_low)
    angle_low = fma(high, pi, -angle) + fma(high, low_pi, low * half_pi)
    total = angle + angle_low
    angle_low = angle_low - (total - angle)
    finite = np.isfinite(x)
    return quadrant.astype(np.int64), np.where(finite, total, np.nan), np.where(finite, angle_low, np.nan)


def _digits(x: float) -> tuple[int, float, float]:
    """n, and x * 2/pi - n as the sum of two numbers."""
    word = struct.unpack("<Q", struct.pack("<d", x))[0]
    is_negative = bool(word >> 63)
    mantissa = (word & (2**52 - 1)) | 2**52
    start = ((word >> 52) & 2047) - 1075 + 62
    shift = start & 63
    parts = _TABLE[start >> 6 : (start >> 6) + 4]
    first, second, third = (
        ((parts[i] << shift) | (parts[i + 1] >> (64 - shift) if shift else 0)) & _WORD for i in range(3)
    )
    product = ((first * mantissa & _WORD) << 64) + mantissa * second + (mantissa * third >> 64)
    product &= 2**128 - 1
    quadrant = ((product + (1 << 125)) & (2**128 - 1)) >> 126
    fraction = (product - (quadrant << 126)) & (2**128 - 1)
    turned = bool(fraction >> 127)
    if turned:
        fraction = 2**128 - fraction
    sign = -1.0 if turned ^ is_negative else 1.0
    if not fraction:
        return (-quadrant if is_negative else quadrant), 0.0, 0.0
    zeros = 128 - fraction.bit_length()
    normal = fraction << zeros
    power = sign * 2.0 ** (2 - zeros)
    high = float(normal >> 75) * 2.0**-53 * power
    low = float((normal >> 22) & (2**53 - 1)) * 2.0**-106 * power
    return (-quadrant if is_negative else quadrant), high, low
