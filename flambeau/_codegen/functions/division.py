"""What division leaves: fmod, and its forms with the sign of the divisor."""

from __future__ import annotations

from ..build import Builder, Value
from ..on_numpy.builder import Evaluator
from .parts import INFINITY, NAN, Format, any_lane, format_of, is_negative, scaled, shifted_exponent, with_sign_of


def fmod(b: Builder, x: Value, y: Value) -> Value:
    """What is left of x after subtracting y a whole number of times, exactly, with the sign of x.

    A multiple of |y| by a power of two is subtracted as often as it fits, so that the quotient has few digits and
    nothing is rounded. One step suffices unless the quotient of x and y is large; lanes that need more keep it going.
    """
    x, y = b.matched(x, y)
    if isinstance(b, Evaluator):
        return b.fmod(x, y)
    form = format_of(x)
    divisor = b.abs(y)
    usual = (b.abs(x) < INFINITY) & (divisor > 0.0) & (divisor < INFINITY)
    # Lanes without an ordinary quotient must not keep the loop going.
    left = b.variable(x.element, b.select(usual, b.abs(x), 0.0), x.lanes)
    divisor = b.select(usual, divisor, 1.0)
    lowest = _exponent(b, divisor, form)
    with b.repeat_while() as go_on_if:
        now = left.value
        spread = b.larger(_exponent(b, now, form) - lowest - (form.digits - 2), 0)
        multiple = scaled(b, divisor, spread + shifted_exponent(0, form), form)
        rest = b.fma(-b.trunc(now / multiple), multiple, now)
        # The quotient may have been rounded up to the next whole number.
        rest = b.select(rest < 0.0, rest + multiple, rest)
        left.value = rest
        go_on_if(any_lane(b, rest >= divisor))
    right = b.select(usual, with_sign_of(b, left.value, x), NAN)
    return b.select((b.abs(y) == INFINITY) & (b.abs(x) < INFINITY), x, right)


def _exponent(b: Builder, x: Value, form: Format) -> Value:
    """The exponent of a number that is not negative, denormal numbers included; for 0 something small."""
    denormal = x < form.smallest
    lifted = b.bits(b.select(denormal, x * 2.0**form.digits, x), form.integer) >> form.digits
    return b.select(denormal, lifted - form.digits, lifted)


def remainder(b: Builder, x: Value, y: Value) -> Value:
    """Like Python's %: what is left has the sign of y, zero included."""
    x, y = b.matched(x, y)
    left = fmod(b, x, y)
    across = (left != 0.0) & (is_negative(b, left) ^ is_negative(b, y))
    return b.select(left == 0.0, with_sign_of(b, left, y), b.select(across, left + y, left))


def floor_divide(b: Builder, x: Value, y: Value) -> Value:
    """The whole number below the quotient, from what fmod leaves, so that it is not rounded up."""
    x, y = b.matched(x, y)
    left = fmod(b, x, y)
    quotient = (x - left) / y
    across = (left != 0.0) & (is_negative(b, left) ^ is_negative(b, y))
    quotient = b.select(across, quotient - 1.0, quotient)
    floor = b.floor(quotient)
    floor = b.select(quotient - floor > 0.5, floor + 1.0, floor)
    ratio = x / y
    beyond = (b.abs(ratio) == INFINITY) & (b.abs(x) < INFINITY)  # by zero, or more than any number
    return b.select((y == 0.0) | beyond, ratio, b.select(quotient == 0.0, with_sign_of(b, quotient, ratio), floor))
