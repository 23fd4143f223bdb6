"""bfloat16, complex32 and the 8-bit floats by their bits: what replaces ml-dtypes where it is not installed.

NumPy has none of these types, and ml-dtypes, which adds them, has no wheel for the browser. Without it the arrays of
these types hold bits: `ARRAY_TYPES` has a dtype of its own for each, which NumPy copies, indexes and joins, but does
not compute with. Kernels get such arrays as float32 or complex64 (`narrow.py`); `decoded` and `encoded` convert.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np


class Format(NamedTuple):
    """The layout of an 8-bit float: bits of exponent and fraction, and the patterns that are no finite number."""

    exponent: int
    fraction: int
    bias: int
    infinity: int | None
    """The pattern of infinity, which is also that of the first number too large; None: NaN stands there."""
    nan: int
    only_nan: bool
    """Whether there is one NaN, in the place of the negative zero; otherwise NaN has a sign."""


_FORMATS = {
    "float8_e4m3fn": Format(4, 3, 7, None, 0x7F, False),
    "float8_e5m2": Format(5, 2, 15, 0x7C, 0x7E, False),
    "float8_e4m3fnuz": Format(4, 3, 8, None, 0x80, True),
    "float8_e5m2fnuz": Format(5, 2, 16, None, 0x80, True),
}

_SIZES = {"bfloat16": 2, "complex32": 4, "float8_e8m0fnu": 1, **dict.fromkeys(_FORMATS, 1)}
ARRAY_TYPES: dict[str, np.dtype[Any]] = {name: np.dtype([(name, f"V{size}")]) for name, size in _SIZES.items()}
"""Dtypes of arrays that hold bits, by name. Fields with different names make them different to NumPy."""
NAMES: dict[np.dtype[Any], str] = {each: name for name, each in ARRAY_TYPES.items()}


class Limits(NamedTuple):
    """What `finfo` asks about a type."""

    eps: float
    max: float
    min: float
    smallest_normal: float


def decoded(array: Any) -> Any:
    """An array of bits as float32, or as complex64."""
    name = NAMES[array.dtype]
    if name == "bfloat16":
        return np.asarray(array.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if name == "complex32":
        parts = np.ascontiguousarray(array).view(np.float16).astype(np.float32).view(np.complex64)
        return parts.reshape(array.shape)
    return np.asarray(_values(name)[array.view(np.uint8)])


def encoded(array: Any, array_type: np.dtype[Any]) -> Any:
    """Numbers rounded to the nearest of a type, ties to even, as its bits.

    A number out of range becomes infinity, or NaN where the type has no infinity.
    """
    array = np.asarray(array)
    name = NAMES[array_type]
    if name == "complex32":
        with np.errstate(over="ignore"):
            parts = np.ascontiguousarray(array, np.complex64).view(np.float32).astype(np.float16)
        np.copysign(np.float16(np.nan), parts, out=parts, where=np.isnan(parts))  # one NaN, with its sign
        return parts.view(array_type).reshape(array.shape)
    if name == "bfloat16":
        return _bfloat16_bits(array).view(array_type)
    bits = _power_bits(array) if name == "float8_e8m0fnu" else _float8_bits(array, name)
    return np.asarray(bits).view(array_type)


@functools.cache
def limits(name: str) -> Limits:
    """The limits of bfloat16 and of the 8-bit floats that have a sign."""
    if name == "bfloat16":
        return Limits(2.0**-7, float.fromhex("0x1.fep127"), -float.fromhex("0x1.fep127"), 2.0**-126)
    form = _FORMATS[name]
    largest = float(_magnitudes(name)[-2])
    return Limits(2.0**-form.fraction, largest, -largest, 2.0 ** (1 - form.bias))


def _bfloat16_bits(array: Any) -> Any:
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinity, which it is in bfloat16 too
        words = np.array(array, np.float32, copy=None, order="K").view(np.uint32)
    even = (words >> np.uint32(16)) & np.uint32(1)
    bits = ((words + np.uint32(0x7FFF) + even) >> np.uint32(16)).astype(np.uint16)
    # Rounding up could make an infinity of a NaN: all become the quiet one, with their sign.
    quiet = ((words >> np.uint32(16)) & np.uint32(0x8000) | np.uint32(0x7FC0)).astype(np.uint16)
    return np.asarray(np.where((words & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000), quiet, bits))


@functools.cache
def _magnitudes(name: str) -> Any:
    """The finite numbers that are not negative, by their patterns, and the one that would follow on the largest."""
    form = _FORMATS[name]
    one = 1 << form.fraction
    last = form.infinity or form.nan
    patterns = np.arange(last + 1)
    exponents, fractions = patterns >> form.fraction, patterns & (one - 1)
    normal = (fractions + one) * 2.0 ** (exponents - form.bias - form.fraction)
    return np.where(exponents == 0, fractions * 2.0 ** (1 - form.bias - form.fraction), normal)


@functools.cache
def _values(name: str) -> Any:
    """The number of each of the 256 patterns, as float32."""
    if name == "float8_e8m0fnu":
        return np.append(2.0 ** (np.arange(255) - 127.0), np.nan).astype(np.float32)
    form = _FORMATS[name]
    finite = _magnitudes(name)[:-1]
    values = np.full(256, np.nan)
    values[: len(finite)] = finite
    values[128 : 128 + len(finite)] = -finite
    if form.infinity is not None:
        values[form.infinity], values[form.infinity + 128] = np.inf, -np.inf
    if form.only_nan:
        values[form.nan] = np.nan
    values[128:][np.isnan(values[128:])] = -np.nan
    return values.astype(np.float32)


def _float8_bits(array: Any, name: str) -> Any:
    form = _FORMATS[name]
    magnitudes = _magnitudes(name)
    between = (magnitudes[1:] + magnitudes[:-1]) / 2  # exact in float64
    with np.errstate(over="ignore"):  # by way of float32, as in PyTorch: numbers between are rounded twice
        wide = np.asarray(array, np.float32)
    amount = np.abs(wide)
    low, high = np.searchsorted(between, amount, "left"), np.searchsorted(between, amount, "right")
    bits = np.where(low % 2 == 0, low, high)  # they differ by one for a number in the middle, and are one otherwise
    negative = np.signbit(wide)
    beyond = np.isnan(wide) | (bits >= len(magnitudes) - 1) if form.infinity is None else np.isnan(wide)
    if form.only_nan:  # no negative zero either
        return np.where(beyond, form.nan, np.where(negative & (bits > 0), bits + 128, bits)).astype(np.uint8)
    return (np.where(beyond, form.nan, bits) + 128 * negative).astype(np.uint8)


def _power_bits(array: Any) -> Any:
    """The exponents of powers of two: a number in the middle between two becomes the greater one; NaN has no sign."""
    with np.errstate(over="ignore"):
        wide = np.asarray(array, np.float32)
    between = 1.5 * 2.0 ** (np.arange(255) - 127.0)
    between[0] = np.nextafter(np.float32(2.0**-127), np.float32(1))  # subnormal numbers of float32 are rounded up
    bits = np.searchsorted(between, wide, "right")
    return np.where((wide > 0) & (bits < 255), bits, 255).astype(np.uint8)
