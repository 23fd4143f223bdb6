"""The error function and its relatives."""

from __future__ import annotations

from ..build import Builder, Value
from ..types import F64
from .coefficients import ERF, ERF_EXP2, ERF_LOG2, ERFCX, ERFINV_CENTRE, ERFINV_FAR, ERFINV_MIDDLE, ERFINV_SHORT
from .exponential import exp_parts
from .logarithm import log_for_single, log_of_normal
from .parts import (
    INFINITY,
    NAN,
    SINGLE,
    Format,
    any_lane,
    format_of,
    polynomial,
    power_of_two,
    product,
    quick_sum,
    scaled,
    whole_part,
    with_sign_of,
)


def erf(b: Builder, x: Value) -> Value:
    """Up to 1 a polynomial, from there 1 - erfc(x), where erfc(x) is 2 to the power of a polynomial."""
    form = format_of(x)
    size = b.abs(x)
    near = _near_erf(b, size, form)
    binary = polynomial(b, b.minimum(size, form.pick(4.0, 6.0)), form.of(ERF_LOG2))
    whole, exponent = whole_part(b, binary, 1.0, form)
    rest = binary - whole
    grown = b.fma(rest, polynomial(b, rest, form.of(ERF_EXP2)), 1.0)
    far = b.fma(-grown, power_of_two(b, exponent, form), 1.0)
    return with_sign_of(b, b.select(size < 1.0, near, far), x)


def _near_erf(b: Builder, x: Value, form: Format) -> Value:
    """erf(x) for |x| up to 1."""
    return b.fma(x, polynomial(b, x * x, form.of(ERF)), x)


def _far_erfc(b: Builder, x: Value, form: Format) -> Value:
    """erfc(x) for positive x up to 28: exp(-x * x) times a function that is smooth after a change of variable."""
    square = product(b, x, x)
    exponent, grown = exp_parts(b, -square.high, -square.low, form)
    smooth = polynomial(b, (x - 3.75) / (x + 3.75), form.of(ERFCX))
    smooth, smooth_low = quick_sum(b.constant(x.type, 1.25), smooth)
    divisor = b.fma(x, 2.0, 1.0)
    inverse = 1.0 / divisor
    quotient = smooth * inverse
    rest = b.fma(-quotient, divisor, smooth) + b.fma(-quotient, b.fma(x, 2.0, 1.0 - divisor), smooth_low)
    low = b.fma(rest * inverse, grown.high, quotient * grown.low)
    return scaled(b, b.fma(quotient, grown.high, low), exponent, form)


def erfc(b: Builder, x: Value) -> Value:
    form = format_of(x)
    size = b.abs(x)
    far = _far_erfc(b, b.minimum(size, form.pick(11.0, 28.0)), form)
    near = 1.0 - _near_erf(b, x, form)
    return b.select(size < 0.25, near, b.select(x < 0.0, 2.0 - far, far))


def erfinv(b: Builder, x: Value) -> Value:
    """x + x times a function of w = -log(1 - x**2), which has a polynomial for each of three ranges.

    It is computed in double precision: in single, the polynomials' own rounding would be too much. What is rounded to
    single at the end needs shorter ones.
    """
    single = format_of(x) is SINGLE
    given, x = x, b.convert(x, F64)
    size = b.abs(x)
    # The ends of the logarithm are put right below.
    w = -(log_for_single if single else log_of_normal)(b, (1.0 - size) * (size + 1.0))
    centre = ERFINV_SHORT if single else ERFINV_CENTRE
    excess = b.variable(F64, polynomial(b, w - 3.0, centre.double), x.lanes)
    with b.when(any_lane(b, w >= 6.0), likely=False):  # beyond 0.9987
        root = b.sqrt(w)
        far = polynomial(b, root - 3.25, ERFINV_MIDDLE.double)
        if not single:  # whose w ends before
            far = b.select(root > 4.0, polynomial(b, root - 5.0, ERFINV_FAR.double), far)
        excess.value = b.select(w < 6.0, excess.value, far)
    right = b.select(size < 1.0, b.fma(size, excess.value, size), NAN)
    right = b.select(size == 1.0, INFINITY, right)
    return b.convert(with_sign_of(b, right, x), given.element)
