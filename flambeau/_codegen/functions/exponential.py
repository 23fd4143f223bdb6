"""exp and what is made of it: powers of two, the logistic function, hyperbolic functions.

exp(x) = 2**n * exp(r), with n the whole number nearest to x / log(2), and r what is left, at most log(2) / 2 in size.
"""

from __future__ import annotations

import math

from ..build import Builder, Value
from .coefficients import EXP, EXP2, SINH, TANH
from .parts import (
    Format,
    Pair,
    format_of,
    polynomial,
    power_of_two,
    quick_sum,
    scaled,
    shifted_exponent,
    whole_part,
    with_sign_of,
)

# log(2) as a sum: the first part has so few digits that products with exponents are exact.
LOG2_HIGH = (0.693145751953125, 0.693147180559663)
LOG2_LOW = (1.4286068203094172e-06, 2.8235290563031577e-13)

# exp is 0 below the first and infinite above the second of these.
_LOWEST = (-104.0, -746.0)
_HIGHEST = (89.0, 710.0)


def within(b: Builder, x: Value, low: float, high: float) -> Value:
    """`x` moved into a range; NaN stays."""
    return b.maximum(b.minimum(x, high), low)


def reduced(b: Builder, x: Value, form: Format) -> tuple[Value, Value]:
    """n, as an exponent, and r for exp(x) = 2**n * exp(r). Only for `x` in the range of exp, or NaN."""
    whole, exponent = whole_part(b, x, 1 / math.log(2), form)
    rest = b.fma(whole, -form.pick(*LOG2_HIGH), x)
    return exponent, b.fma(whole, -form.pick(*LOG2_LOW), rest)


def expm1_of_rest(b: Builder, rest: Value, form: Format) -> Value:
    """exp(r) - 1 for |r| up to log(2) / 2."""
    return b.fma(rest * rest, polynomial(b, rest, form.of(EXP)), rest)


def exp_parts(b: Builder, x: Value, low: Value | None, form: Format) -> tuple[Value, Pair]:
    """n and exp(r) for exp(x + low) = 2**n * exp(r), the latter with more digits than the format has."""
    x = within(b, x, form.pick(*_LOWEST), form.pick(*_HIGHEST))
    exponent, rest = reduced(b, x, form)
    # 1 + r is kept with what its rounding loses.
    begun, lost = quick_sum(b.constant(x.type, 1.0), rest)
    total = quick_sum(begun, b.fma(rest * rest, polynomial(b, rest, form.of(EXP)), lost))
    if low is not None:
        total = quick_sum(total.high, b.fma(total.high, low, total.low))
    return exponent, total


def exp(b: Builder, x: Value) -> Value:
    form = format_of(x)
    exponent, total = exp_parts(b, x, None, form)
    return scaled(b, total.high, exponent, form)


def exp2(b: Builder, x: Value) -> Value:
    form = format_of(x)
    x = within(b, x, form.pick(-151.0, -1076.0), form.pick(129.0, 1025.0))
    whole, exponent = whole_part(b, x, 1.0, form)
    rest = x - whole
    return scaled(b, b.fma(rest, polynomial(b, rest, form.of(EXP2)), 1.0), exponent, form)


def expm1(b: Builder, x: Value) -> Value:
    form = format_of(x)
    clamped = within(b, x, form.pick(-20.0, -40.0), form.pick(*_HIGHEST))
    whole, exponent = whole_part(b, clamped, 1 / math.log(2), form)
    begun = b.fma(whole, -form.pick(*LOG2_HIGH), clamped)
    rest = b.fma(whole, -form.pick(*LOG2_LOW), begun)
    low = b.fma(whole, -form.pick(*LOG2_LOW), begun - rest)
    grown = rest + b.fma(rest * rest, polynomial(b, rest, form.of(EXP)), low)
    # Half the result: 2**n itself may be too large.
    power = power_of_two(b, exponent - 1, form)
    half = b.fma(grown, power, power - 0.5)
    return b.select(b.abs(x) < form.smallest * 2.0, x, half + half)


def sigmoid(b: Builder, x: Value) -> Value:
    """1 / (1 + exp(-x)), or exp(x) / (1 + exp(x)) for negative x: the exponential is at most 1."""
    form = format_of(x)
    exponent, small = exp_parts(b, -b.abs(x), None, form)
    # Where the power would be denormal, the sum is 1 anyway.
    lowest = b.bits(b.constant(form.element, form.whole), form.integer) + shifted_exponent(1 - form.bias, form)
    power = power_of_two(b, b.larger(exponent, lowest), form)
    divisor = b.fma(small.high, power, 1.0)
    lost = b.fma(small.high, power, 1.0 - divisor)
    negative = x < 0.0
    dividend = b.select(negative, small.high, 1.0)
    inverse = 1.0 / divisor
    quotient = dividend * inverse
    rest = b.fma(-quotient, lost, b.fma(-quotient, divisor, dividend))
    quotient = b.fma(rest, inverse, quotient)
    return scaled(b, quotient, b.select(negative, exponent, shifted_exponent(0, form)), form)


def _half_exp(b: Builder, x: Value, form: Format) -> Value:
    """exp(x) / 2, finite also for a range beyond that of exp. Only for `x` that is not negative."""
    exponent, rest = reduced(b, b.minimum(x, form.pick(90.0, 711.0)), form)
    begun, lost = quick_sum(b.constant(x.type, 1.0), rest)
    total = begun + b.fma(rest * rest, polynomial(b, rest, form.of(EXP)), lost)
    return scaled(b, total, exponent - 1, form)


def sinh(b: Builder, x: Value) -> Value:
    form = format_of(x)
    size = b.abs(x)
    half = _half_exp(b, size, form)
    far = half - 0.25 / half
    square = x * x
    near = b.fma(square * size, polynomial(b, square, form.of(SINH)), size)
    return with_sign_of(b, b.select(size < 1.0, near, far), x)


def cosh(b: Builder, x: Value) -> Value:
    half = _half_exp(b, b.abs(x), format_of(x))
    return half + 0.25 / half


def tanh(b: Builder, x: Value) -> Value:
    """Up to 1 a polynomial, from there 1 - 2 / (exp(2 * x) + 1), whose error becomes smaller and smaller."""
    form = format_of(x)
    size = b.abs(x)
    exponent, rest = reduced(b, b.minimum(size + size, form.pick(20.0, 40.0)), form)
    power = power_of_two(b, exponent, form)
    grown = b.fma(expm1_of_rest(b, rest, form), power, power + 1.0)
    square = x * x
    near = b.fma(square * size, polynomial(b, square, form.of(TANH)), size)
    return with_sign_of(b, b.select(size < 1.0, near, 1.0 - 2.0 / grown), x)


def exp_of_difference(b: Builder, x: Value) -> Value:
    """exp of what is not, or hardly, above 0, in half the steps: results below the normal numbers are 0."""
    form = format_of(x)
    x = b.maximum(x, form.pick(-88.0, -709.0))  # to where the exponent's bits become 0
    whole = form.whole + form.bias  # the sum's last bits are then those of the result's exponent
    shifted = b.fma(x, 1 / math.log(2), whole)
    power = shifted - whole
    rest = b.fma(power, -form.pick(*LOG2_HIGH), x)
    rest = b.fma(power, -form.pick(*LOG2_LOW), rest)
    value = expm1_of_rest(b, rest, form) + 1.0
    return value * b.bits(b.bits(shifted, form.integer) << form.digits, form.element)
