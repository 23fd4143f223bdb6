"""Powers and roots."""

from __future__ import annotations

import math

from ..build import Builder, Value
from ..types import F32, F64
from .coefficients import EXP, LOG_QUOTIENT, LOG_TAIL
from .exponential import LOG2_HIGH, LOG2_LOW, exp_parts, reduced, within
from .logarithm import parted, with_ends
from .parts import (
    DOUBLE,
    INFINITY,
    NAN,
    SINGLE,
    Pair,
    exact_sum,
    format_of,
    is_negative,
    polynomial,
    power_of_two,
    product,
    quick_sum,
    scaled,
    with_sign_of,
)


def power(b: Builder, x: Value, y: Value) -> Value:
    """x**y, with the special values of C's pow: y = 0 and x = 1 give 1 even beside NaN."""
    x, y = b.matched(x, y)
    size = b.abs(x)
    magnitude = (_power_single if format_of(x) is SINGLE else _power_double)(b, size, y)
    magnitude = b.select((size == 1.0) & (y == y), 1.0, magnitude)
    half = y * 0.5
    whole = b.rint(y) == y
    odd = whole & (b.rint(half) != half)
    signed = b.select(odd & is_negative(b, x), -magnitude, magnitude)
    signed = b.select((x < 0.0) & (x > -INFINITY) & (b.rint(y) != y) & (y == y), NAN, signed)
    return b.select((y == 0.0) | (x == 1.0), 1.0, signed)


def _power_single(b: Builder, x: Value, y: Value) -> Value:
    """x**y for `x` not negative: the logarithm and the exponential of its product with `y`, in double precision."""
    wide = b.convert(x, F64)
    exponent, fraction = parted(b, wide, DOUBLE, False)
    f = fraction - 1.0
    s = f / (f + 2.0)
    square = s * s
    log = b.fma(s * square, polynomial(b, square, LOG_QUOTIENT.double[:6]), s + s)
    log = b.fma(b.convert(exponent, F64), math.log(2), log)
    log = b.select(wide < INFINITY, log, wide)
    log = b.select(wide == 0.0, -INFINITY, log)
    argument = within(b, log * b.convert(y, F64), -104.0, 89.0)
    exponent, rest = reduced(b, argument, DOUBLE)
    grown = b.fma(rest * rest, polynomial(b, rest, EXP.double[:7]), rest) + 1.0
    return b.convert(grown * power_of_two(b, exponent, DOUBLE), F32)


def _power_double(b: Builder, x: Value, y: Value) -> Value:
    """x**y for `x` not negative, by a logarithm with about 65 digits."""
    log = _long_log(b, x)
    high, low = product(b, log.high, y)
    low = b.fma(log.low, y, low)
    low = b.select(b.abs(high) < 1000.0, low, 0.0)
    exponent, total = exp_parts(b, high, low, DOUBLE)
    return scaled(b, total.high, exponent, DOUBLE)


def _long_log(b: Builder, x: Value) -> Pair:
    """log(x) for `x` not negative, as 2 * artanh(s) = 2 * (s + s**3 / 3 + ...) with s = (m - 1) / (m + 1)."""
    exponent, fraction = parted(b, x, DOUBLE)
    above = fraction - 1.0
    below, below_low = exact_sum(fraction, 1.0)
    inverse = 1.0 / below
    s = above * inverse
    s_low = (b.fma(-s, below, above) - s * below_low) * inverse
    square, square_low = product(b, s, s)
    square_low = b.fma(s + s, s_low, square_low)
    third = b.constant(x.element, 1 / 3)
    factor, factor_low = quick_sum(b.splat(third, x.lanes), square * polynomial(b, square, DOUBLE.of(LOG_TAIL)))
    factor_low = factor_low + 1.850371707708594e-17  # 1/3 - third
    tail, tail_low = product(b, square, factor)
    tail_low = tail_low + b.fma(square, factor_low, square_low * factor)
    cubic, cubic_low = product(b, s, tail)
    cubic_low = cubic_low + b.fma(s, tail_low, s_low * tail)
    log, log_low = quick_sum(s, cubic)
    log_low = log_low + (cubic_low + s_low)
    log, log_low = log + log, log_low + log_low
    e = b.convert(exponent, F64)
    total, lost = quick_sum(e * LOG2_HIGH[1], log)
    low = lost + b.fma(e, LOG2_LOW[1], log_low)
    total, low = quick_sum(total, low)
    low = b.select((x < INFINITY) & (x > 0.0), low, 0.0)
    return Pair(with_ends(b, x, total), low)


def rsqrt(b: Builder, x: Value) -> Value:
    format_of(x)  # refuses integers
    return 1.0 / b.sqrt(x)


def cbrt(b: Builder, x: Value) -> Value:
    """From a third of the exponent, a guess; two steps of Halley's method, and one of Newton's with more digits."""
    single = format_of(x) is SINGLE
    given = b.abs(b.convert(x, F64))
    tiny, huge = given < 2.0**-900, given > 2.0**900
    size = given if single else b.select(tiny, given * 2.0**300, b.select(huge, given * 2.0**-300, given))
    upper = b.convert(b.bits(size, DOUBLE.integer) >> 32, F64)
    guess = b.convert(b.fma(upper, 1 / 3, float(715094163)), DOUBLE.integer)
    root = b.bits(guess << 32, F64)
    for _ in range(2):
        cube = root * root * root
        root = root * ((cube + (size + size)) / ((cube + cube) + size))
    if single:
        right = b.convert(root, F32)
    else:
        square, square_low = product(b, root, root)
        excess = b.fma(square_low, root, b.fma(square, root, -size))
        right = root - excess / (square * 3.0)
        right = b.select(tiny, right * 2.0**-100, b.select(huge, right * 2.0**100, right))
    usual = (x != 0.0) & (b.abs(x) < INFINITY)
    return b.select(usual, with_sign_of(b, right, x), x)


def hypot(b: Builder, x: Value, y: Value) -> Value:
    """sqrt(x**2 + y**2) without overflow of the squares; infinite if either is, even beside NaN."""
    x, y = b.matched(x, y)
    if format_of(x) is SINGLE:
        wide, other = b.convert(x, F64), b.convert(y, F64)
        right = b.convert(b.sqrt(b.fma(wide, wide, other * other)), F32)
    else:
        right = _hypot_double(b, b.abs(x), b.abs(y))
    return b.select((b.abs(x) == INFINITY) | (b.abs(y) == INFINITY), INFINITY, right)


def _hypot_double(b: Builder, x: Value, y: Value) -> Value:
    longest = b.select(x > y, x, y)
    huge, tiny = longest > 2.0**500, longest < 2.0**-400
    factor = b.select(huge, b.constant(x.type, 2.0**-600), b.select(tiny, b.constant(x.type, 2.0**600), 1.0))
    back = b.select(huge, b.constant(x.type, 2.0**600), b.select(tiny, b.constant(x.type, 2.0**-600), 1.0))
    first, second = product(b, x * factor, x * factor), product(b, y * factor, y * factor)
    total, lost = exact_sum(first.high, second.high)
    root = b.sqrt(total)
    better = root + (b.fma(-root, root, total) + (lost + (first.low + second.low))) / (root + root)
    return b.select(total == 0.0, total, better) * back
