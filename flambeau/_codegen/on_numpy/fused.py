"""`a * b + c`, rounded once, by operations that round each time: NumPy has no such function."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

Array = Any

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_SPLITTER = 134217729.0
"""2**27 + 1: a product with it parts a number of 53 digits into two of 26."""
_SMALLEST, _LARGEST = 2.0**-900, 2.0**900
"""Products within these, and factors below the second one, lose nothing on the way."""


_LAST_DIGITS, _HALF_WAY = 2**29 - 1, 2**28
_SMALLEST_SINGLE = 2.0**-126


def fma(a: Array, b: Array, c: Array) -> Array:
    """`a * b + c` of arrays of float32 or of float64."""
    return _single(a, b, c) if a.dtype == _SINGLE else _double(a, b, c)


def _single(a: Array, b: Array, c: Array) -> Array:
    """In float64 the product is exact; the sum is rounded to odd, which a second rounding does not spoil."""
    product = np.multiply(a, b, dtype=_DOUBLE)
    return _odd_sum(product, c.astype(_DOUBLE)).astype(_SINGLE)


def fma_of_wide(a: Array, b: Array, c: Array) -> Array:
    """`fma` of numbers of float32 that are kept as float64: no conversions on the way.

    A sum in float64 that is half way between two numbers of float32 may have been rounded to there, and those below
    the normal numbers have fewer digits: only such sums are made again.
    """
    product = a * b
    total = np.asarray(product + c)
    if (total.view(np.int64) & _LAST_DIGITS == _HALF_WAY).any() or (np.abs(total) < _SMALLEST_SINGLE).any():
        total = _odd_sum(product, np.broadcast_to(c, total.shape))
    return total.astype(_SINGLE).astype(_DOUBLE)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The sum, and what its rounding has lost."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _odd_sum(a: Array, b: Array) -> Array:
    """`a + b` rounded to odd: of the two neighbours of an inexact sum the one whose last digit is 1."""
    total, lost = _two_sum(a, b)
    total = np.asarray(total)
    words = total.view(np.int64)
    up = (lost > 0) == (total > 0)
    inexact = ((lost > 0) | (lost < 0)) & ((words & 1) == 0)
    return np.where(inexact, words + np.where(up, 1, -1), words).view(_DOUBLE)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The product, and what its rounding has lost."""
    high = a * b
    parts = []
    for each in (a, b):
        shifted = each * _SPLITTER
        upper = shifted - (shifted - each)
        parts.append((upper, each - upper))
    (a_high, a_low), (b_high, b_low) = parts
    return high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low


def _double(a: Array, b: Array, c: Array) -> Array:
    a, b, c = np.broadcast_arrays(a, b, c)
    high, low = _two_product(a, b)
    first, first_low = _two_sum(c, low)
    total, total_low = _two_sum(high, first)
    result = np.asarray(total + _odd_sum(first_low, total_low))
    size = np.abs(high)
    usual = (size > _SMALLEST) & (size < _LARGEST) & (np.abs(a) < _LARGEST) & (np.abs(b) < _LARGEST)
    usual &= (np.abs(c) < _LARGEST) & ((np.abs(c) > _SMALLEST) | (c == 0))
    others = ~usual
    if others.any():
        plain = high + c  # of zeros and of what is not finite
        simple = others & ((a == 0) | (b == 0) | ~np.isfinite(a) | ~np.isfinite(b) | ~np.isfinite(c))
        result = np.where(simple, plain, result)
        for place in zip(*np.nonzero(np.atleast_1d(others & ~simple)), strict=True):
            at = place if result.ndim else ()
            result[at] = _exactly(float(a[at]), float(b[at]), float(c[at]))
    return result


def _exactly(a: float, b: float, c: float) -> float:
    """For numbers at the ends of the range: in fractions."""
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if not total:
        return a * b + c if (a * b) else (0.0 if c != 0 else c)
    try:
        return float(total)
    except OverflowError:
        return float("inf") if total > 0 else float("-inf")
