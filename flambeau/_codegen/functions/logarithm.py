"""log and what is made of it.

x = 2**e * m, with m from sqrt(1/2) to sqrt(2): log(x) = e * log(2) + log(m).
"""

from __future__ import annotations

import math

from ..build import Builder, Operand, Value
from .coefficients import ASINH, ATANH, LOG_QUOTIENT, LOG_SHORT, LOG_SINGLE
from .exponential import LOG2_HIGH, LOG2_LOW
from .parts import (
    INFINITY,
    NAN,
    SINGLE,
    Format,
    Pair,
    exact_sum,
    format_of,
    polynomial,
    product,
    quick_sum,
    with_sign_of,
)

# 1 / log(2), 1 / log(10) and log10(2) as sums; the last one's first part has few digits.
_BITS_HIGH = (1.4426950216293335, 1.4426950408889634)
_BITS_LOW = (1.9259629911266175e-08, 2.0355273740931033e-17)
_DECADES_HIGH = (0.4342944920063019, 0.4342944819032518)
_DECADES_LOW = (-1.0103050118726367e-08, 1.098319650216765e-17)
_LOG10_2_HIGH = (0.301025390625, 0.30102999566361177)
_LOG10_2_LOW = (4.605038981195214e-06, 3.694239077158931e-13)


def parted(b: Builder, x: Value, form: Format, denormals: bool = True) -> tuple[Value, Value]:
    """e, as an integer, and m for a positive finite `x` = 2**e * m, m from sqrt(1/2) to sqrt(2)."""
    denormal = x < form.smallest
    lifted = b.select(denormal, x * 2.0**form.digits, x) if denormals else x
    lowest = b.bits(b.constant(x.element, 0.5**0.5), form.integer)
    distance = b.bits(lifted, form.integer) - lowest
    exponent = distance >> form.digits
    exponent = b.select(denormal, exponent - form.digits, exponent) if denormals else exponent
    fraction = (distance & ((1 << form.digits) - 1)) + lowest
    return exponent, b.bits(fraction, form.element)


def with_ends(b: Builder, x: Value, logarithm: Value) -> Value:
    """The logarithm of any `x`, given what was computed for positive finite ones."""
    right = b.select(x < INFINITY, logarithm, x)  # infinite and NaN
    right = b.select(x == 0.0, -INFINITY, right)
    return b.select(x < 0.0, NAN, right)


def _log_of_fraction(b: Builder, f: Value, form: Format) -> tuple[Value, Value]:
    """Two numbers whose difference has to be subtracted from `f` for log(1 + f): f**2 / 2, and the rest."""
    half_square = f * f * 0.5
    if form is SINGLE:
        return half_square, polynomial(b, f, form.of(LOG_SINGLE)) * f * (f * f)
    s = f / (f + 2.0)
    square = s * s
    return half_square, s * b.fma(square, polynomial(b, square, form.of(LOG_QUOTIENT)), half_square)


def log(b: Builder, x: Value) -> Value:
    form = format_of(x)
    exponent, fraction = parted(b, x, form)
    return with_ends(b, x, _log_of_parts(b, b.convert(exponent, form.element), fraction - 1.0, 0.0, form))


def log_of_normal(b: Builder, x: Value) -> Value:
    """log of a number that is positive, finite and not denormal; of others it is anything."""
    form = format_of(x)
    exponent, fraction = parted(b, x, form, denormals=False)
    return _log_of_parts(b, b.convert(exponent, form.element), fraction - 1.0, 0.0, form)


def log_for_single(b: Builder, x: Value) -> Value:
    """log in double precision for float32 results: an error of some 2**-32 unless the result is much smaller than 1."""
    form = format_of(x)
    exponent, fraction = parted(b, x, form, denormals=False)
    f = fraction - 1.0
    square = f * f
    rest = b.fma(f * square, polynomial(b, f, LOG_SHORT.double), square * -0.5)
    return b.fma(b.convert(exponent, form.element), math.log(2), f + rest)


def _log_of_parts(b: Builder, e: Value, f: Value, more: Operand, form: Format) -> Value:
    """e * log(2) + log(1 + f) + more, where `more` is very small."""
    half_square, rest = _log_of_fraction(b, f, form)
    rest = b.fma(e, form.pick(*LOG2_LOW), rest)
    if isinstance(more, Value):
        rest = rest + more
    return b.fma(e, form.pick(*LOG2_HIGH), f - (half_square - rest))


def _log_in_base(b: Builder, x: Value, factor: Pair, unit: tuple[float, float]) -> Value:
    form = format_of(x)
    exponent, fraction = parted(b, x, form)
    e = b.convert(exponent, form.element)
    f = fraction - 1.0
    half_square, rest = _log_of_fraction(b, f, form)
    natural, lost = quick_sum(f, -half_square)
    rest = rest + lost
    scaled_high, scaled_low = product(b, natural, factor.high)
    scaled_low = b.fma(rest, factor.high, b.fma(natural + rest, factor.low, scaled_low))
    total, lost = quick_sum(e * unit[0], scaled_high)
    return with_ends(b, x, total + (lost + b.fma(e, unit[1], scaled_low)))


def log2(b: Builder, x: Value) -> Value:
    form = format_of(x)
    factor = Pair(*(b.constant(form.element, form.pick(*part)) for part in (_BITS_HIGH, _BITS_LOW)))
    return _log_in_base(b, x, factor, (1.0, 0.0))


def log10(b: Builder, x: Value) -> Value:
    form = format_of(x)
    factor = Pair(*(b.constant(form.element, form.pick(*part)) for part in (_DECADES_HIGH, _DECADES_LOW)))
    return _log_in_base(b, x, factor, (form.pick(*_LOG10_2_HIGH), form.pick(*_LOG10_2_LOW)))


def _log_of_sum(b: Builder, high: Value, low: Value, form: Format, doubled: Value | None = None) -> Value:
    """log(high + low), `low` being small; where `doubled` holds, that of twice the sum."""
    exponent, fraction = parted(b, high, form)
    e = b.convert(exponent, form.element)
    if doubled is not None:
        e = b.select(doubled, e + 1.0, e)
    return _log_of_parts(b, e, fraction - 1.0, low / high, form)


def log1p(b: Builder, x: Value) -> Value:
    form = format_of(x)
    one_more = exact_sum(x, 1.0)
    right = with_ends(b, one_more.high, _log_of_sum(b, one_more.high, one_more.low, form))
    return b.select(x == 0.0, x, right)


def arcsinh(b: Builder, x: Value) -> Value:
    """Up to 1/2 a polynomial, from there log(x + sqrt(x**2 + 1)), for huge x log(2 * x)."""
    form = format_of(x)
    size = b.abs(x)
    huge = size > 2.0**form.digits
    moderate = b.select(huge, 1.0, size)
    root = _root_of_square(b, moderate, 1.0)
    total, low = exact_sum(root.high, moderate)
    total, low = b.select(huge, size, total), b.select(huge, 0.0, low + root.low)
    far = b.select(size < INFINITY, _log_of_sum(b, total, low, form, huge), size)
    square = x * x
    near = b.fma(square * size, polynomial(b, square, form.of(ASINH)), size)
    return with_sign_of(b, b.select(size < 0.5, near, far), x)


def _root_of_square(b: Builder, x: Value, more: float) -> Pair:
    """sqrt(x**2 + more) for `x` not negative."""
    square = product(b, x, x)
    total, low = exact_sum(square.high, more)
    root = b.sqrt(total)
    return Pair(root, (b.fma(-root, root, total) + (low + square.low)) / (root + root))


def arccosh(b: Builder, x: Value) -> Value:
    """log(1 + (t + sqrt(2 * t + t**2))) with t = x - 1, for huge x log(2 * x)."""
    form = format_of(x)
    huge = x > 2.0**form.digits
    t = b.select(huge, 1.0, x) - 1.0
    square = product(b, t, t)
    radicand, low = exact_sum(t + t, square.high)
    root = b.sqrt(radicand)
    divisor = b.select(root > 0.0, root + root, 1.0)
    root_low = (b.fma(-root, root, radicand) + (low + square.low)) / divisor
    above, above_low = exact_sum(root, t)
    total, low = exact_sum(above, 1.0)
    low = low + (above_low + root_low)
    total, low = b.select(huge, x, total), b.select(huge, 0.0, low)
    right = b.select(x < INFINITY, _log_of_sum(b, total, low, form, huge), x)
    return b.select(x < 1.0, NAN, right)


def arctanh(b: Builder, x: Value) -> Value:
    """Up to 1/2 a polynomial, from there log((1 + x) / (1 - x)) / 2."""
    form = format_of(x)
    size = b.abs(x)
    upper, lost = quick_sum(b.constant(x.type, 1.0), size)
    lower = 1.0 - size
    quotient = upper / lower
    rest = (b.fma(-quotient, lower, upper) + lost) / lower
    far = with_ends(b, quotient, _log_of_sum(b, quotient, rest, form)) * 0.5
    square = x * x
    near = b.fma(square * size, polynomial(b, square, form.of(ATANH)), size)
    return with_sign_of(b, b.select(size < 0.5, near, far), x)
