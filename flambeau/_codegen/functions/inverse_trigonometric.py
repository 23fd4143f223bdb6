"""arcsin, arccos, arctan and arctan2."""

from __future__ import annotations

from ..build import Builder, Value
from .coefficients import ASIN, ATAN
from .parts import Format, Pair, exact_sum, format_of, is_negative, polynomial, with_sign_of

_PI_HIGH = (3.1415927410125732, 3.141592653589793)
_PI_LOW = (-8.742277657347586e-08, 1.2246467991473532e-16)


def _from_angle(form: Format, turns: float, x: Value, low: Value) -> Value:
    """turns * pi - (x + low), where `low` is small."""
    high, lost = exact_sum(-x, turns * form.pick(*_PI_HIGH))
    return high + (lost + (turns * form.pick(*_PI_LOW) - low))


def arctan(b: Builder, x: Value) -> Value:
    """A polynomial up to 1; beyond, pi/2 - arctan(1 / x)."""
    form = format_of(x)
    size = b.abs(x)
    large = size > 1.0
    ratio = b.select(large, 1.0 / size, size)
    angle = _arctan_tail(b, ratio, form)
    far = _from_angle(form, 0.5, ratio, angle)
    return with_sign_of(b, b.select(large, far, ratio + angle), x)


def _arctan_tail(b: Builder, x: Value, form: Format) -> Value:
    """arctan(x) - x for `x` from 0 to 1."""
    square = x * x
    return square * x * polynomial(b, square, form.of(ATAN))


def arctan2(b: Builder, y: Value, x: Value) -> Value:
    """The angle of the point (x, y): in the eighth of the plane that it is mirrored into, a polynomial."""
    form = format_of(y)
    y, x = b.matched(y, x)
    height, width = b.abs(y), b.abs(x)
    steep = height > width
    shorter, longer = b.select(steep, width, height), b.select(steep, height, width)
    ratio = shorter / longer
    ratio = b.select(shorter == longer, b.select(longer == 0.0, longer, 1.0), ratio)
    tail = _arctan_tail(b, ratio, form)
    # The angle is a number of quarter turns, from which the ratio's is subtracted or to which it is added.
    backwards = is_negative(b, x)
    sign = b.select(steep ^ backwards, b.constant(x.type, -1.0), 1.0)
    quarters = b.select(steep, b.constant(x.type, 0.5), b.select(backwards, b.constant(x.type, 1.0), 0.0))
    high, lost = exact_sum(ratio * sign, quarters * form.pick(*_PI_HIGH))
    angle = high + (lost + b.fma(tail, sign, quarters * form.pick(*_PI_LOW)))
    return b.select((x != x) | (y != y), x + y, with_sign_of(b, angle, y))


def _arcsin_parts(b: Builder, x: Value, form: Format) -> tuple[Value, Pair]:
    """Whether |x| is at most 1/2, and there arcsin(|x|), else arcsin(sqrt((1 - |x|) / 2)), as a sum."""
    size = b.abs(x)
    small = size <= 0.5
    square = b.select(small, x * x, b.fma(size, -0.5, 0.5))
    root = b.sqrt(square)
    root_low = b.fma(-root, root, square) / (root + root)
    root = b.select(small, size, root)
    root_low = b.select(small | (square == 0.0), 0.0, root_low)
    return small, Pair(root, b.fma(square * root, polynomial(b, square, form.of(ASIN)), root_low))


def arcsin(b: Builder, x: Value) -> Value:
    form = format_of(x)
    small, (high, low) = _arcsin_parts(b, x, form)
    far = _from_angle(form, 0.5, high + high, low + low)
    return with_sign_of(b, b.select(small, high + low, far), x)


def arccos(b: Builder, x: Value) -> Value:
    form = format_of(x)
    small, (high, low) = _arcsin_parts(b, x, form)
    negative = x < 0.0
    middle = _from_angle(form, 0.5, with_sign_of(b, high, x), b.select(negative, -low, low))
    high, low = high + high, low + low
    return b.select(small, middle, b.select(negative, _from_angle(form, 1.0, high, low), high + low))
