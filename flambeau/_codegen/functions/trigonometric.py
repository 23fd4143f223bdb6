"""sin, cos and tan.

x = n * pi/2 + r, with |r| up to pi/4: n says which of two polynomials in r it is, and the sign. r is computed with more
digits than the format has. For moderate x, n * pi/2 is subtracted in three parts. For huge ones, whose digits say
nothing about r without hundreds of digits of pi, a function computes x * 2/pi modulo 4 in integers; it is called only
if a vector has such a lane.
"""

from __future__ import annotations

import numpy as np

from ..build import Builder, Value
from ..ir import ir
from ..on_numpy.builder import Evaluator
from ..types import F64, I64, POINTER
from .coefficients import COS, SIN, TAN, TWO_OVER_PI
from .parts import (
    INFINITY,
    NAN,
    SINGLE,
    Format,
    Pair,
    any_lane,
    exact_sum,
    format_of,
    polynomial,
    product,
    quick_sum,
)

_HALF_PI = (
    (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
)
_HUGE = (2.0**17, 2.0**20)

_I128 = ir.IntType(128)
_WORDS = 20
"""Words of 64 digits of 2/pi after the first one, which is 0."""


def _reduced(b: Builder, x: Value, form: Format) -> tuple[Value, Pair]:
    """n, as an integer modulo 4, and r."""
    first, second, third = _HALF_PI[0] if form is SINGLE else _HALF_PI[1]
    shifted = b.fma(x, 0.6366197723675814, form.whole)
    whole, quadrant = shifted - form.whole, b.bits(shifted, form.integer)  # of the latter, two digits are used
    begun = b.fma(whole, -first, x)  # exactly
    # Of what follows, so many digits may cancel that all of them are needed.
    subtracted = product(b, whole, -second)
    rest, lost = exact_sum(begun, subtracted.high)
    rest, low = quick_sum(rest, lost + b.fma(whole, -third, subtracted.low))
    huge = b.abs(x) > form.pick(*_HUGE)
    if isinstance(b, Evaluator):
        return _reduced_by_numpy(b, x, huge, form, (quadrant, rest, low))
    lanes = x.lanes
    results = [b.variable(each.element, each, lanes) for each in (quadrant, rest, low)]
    with b.when(any_lane(b, huge), likely=False):
        places = [b.stack(each.element, lanes) for each in (x, quadrant, rest, low)]
        for place, value in zip(places, (x, quadrant, rest, low), strict=True):
            b.store_raw(value, place, None, 16)
        with b.loop(0, lanes) as lane:
            number = b.load_raw(b.offset(places[0], lane, form.element), form.element)
            with b.when(b.abs(number) > form.pick(*_HUGE)):
                for place, part in zip(places[1:], _reduced_huge(b, number, form), strict=True):
                    b.store_raw(part, b.offset(place, lane, part.type))
        for variable, place, value in zip(results, places[1:], (quadrant, rest, low), strict=True):
            variable.value = b.load_raw(place, value.type, 16)
    quadrant, rest, low = (variable.value for variable in results)
    return quadrant, Pair(rest, low)


def _reduced_by_numpy(
    b: Evaluator, x: Value, huge: Value, form: Format, others: tuple[Value, Value, Value]
) -> tuple[Value, Pair]:
    """n and r: those of huge numbers by `on_numpy/angles.py`, of others as they are."""
    places = np.asarray(huge.ir.array)
    if not places.any():
        return others[0], Pair(others[1], others[2])
    from ..on_numpy.angles import reduced

    found = [np.array(each.ir.array) for each in others]
    half_pi, half_pi_low, _ = _HALF_PI[1]
    quadrant, high, low = reduced(np.asarray(x.ir.array)[places].astype(np.float64), half_pi, half_pi_low)
    if form is SINGLE:
        rounded = high.astype(np.float32)
        high, low = rounded, (high - rounded.astype(np.float64)).astype(np.float32)
    for array, value in zip(found, (quadrant, high, low), strict=True):
        array[places] = value
    whole, angle, angle_low = (b.given(array, each.type) for array, each in zip(found, others, strict=True))
    return whole, Pair(angle, angle_low)


def _reduced_huge(b: Builder, x: Value, form: Format) -> tuple[Value, Value, Value]:
    """n and the two parts of r for one huge number."""
    place = b.stack(F64, 2)
    quadrant = b.call(_huge_reduction(b), I64, [b.convert(x, F64), place])
    high, low = b.load_raw(place, F64), b.load_raw(b.offset(place, 8), F64)
    if form is SINGLE:
        rounded = b.convert(high, form.element)
        return b.convert(quadrant, form.integer), rounded, b.convert(high - b.convert(rounded, F64), form.element)
    return quadrant, high, low


def _huge_reduction(b: Builder) -> str:
    """The name of a function of a number and an address: it writes the two parts of r there and returns n.

    The number is M * 2**e with a whole M. Digits of 2/pi that are worth multiples of 4 after multiplication by 2**e
    are left out; of those that follow, 192 are multiplied by M, modulo 4. The last one is worth 2**-190, so that the
    product is off by less than 2**-137, while no double is nearer to a multiple of pi/2 than 2**-62.
    """
    name = "flambeau_huge_reduction"
    if name in b.module.globals:
        return name
    digits = ir.GlobalVariable(b.module, ir.ArrayType(I64, _WORDS + 1), "flambeau_two_over_pi")
    words = [0, *((TWO_OVER_PI >> (64 * place)) & (2**64 - 1) for place in reversed(range(_WORDS)))]
    digits.initializer = ir.Constant(digits.value_type, words)
    digits.global_constant = True
    digits.linkage = "internal"
    c = b.subroutine(name, I64, [F64, POINTER])
    x, place = c.arguments
    table = Value(c, c.ir.bitcast(digits, POINTER))

    def wide(value: Value) -> Value:
        value.signed = False
        return c.convert(value, _I128, False)

    word = c.bits(x, I64)
    mantissa = (word & (2**52 - 1)) | 2**52
    exponent = ((word >> 52) & 2047) - 1075
    start = exponent + 62  # the digit worth 2**(1 - exponent), counted from the start of the table
    shift = start & 63
    parts = [c.load_raw(c.offset(table, (start >> 6) + i, I64), I64) for i in range(4)]
    first, second, third = (c.intrinsic("llvm.fshl", I64, [*parts[i : i + 2], shift], [I64]) for i in range(3))
    m = wide(mantissa)
    product = (wide(first * mantissa) << 64) + m * wide(second) + ((m * wide(third)) >> 64)
    # Two digits for n and 126 of a fraction, which becomes one from -1/2 to 1/2.
    quadrant = (product + (1 << 125)) >> 126
    fraction = Value(c, (product - (quadrant << 126)).ir)
    negative = fraction < 0
    fraction = c.select(negative, -fraction, fraction)
    fraction.signed = False
    zeros = c.intrinsic("llvm.ctlz", _I128, [fraction, Value(c, ir.Constant(ir.IntType(1), 0))], [_I128], False)
    normal = fraction << zeros
    power = c.bits((1023 - 126 - c.convert(zeros, I64, True) + 128) << 52, F64)
    power = c.select(zeros < 128, power, 0.0)
    power = c.select(negative ^ (word < 0), -power, power)
    high = c.convert(c.convert(normal >> 75, I64, True), F64) * 2.0**-53 * power
    low = c.convert(c.convert((normal >> 22) & (2**53 - 1), I64, True), F64) * 2.0**-106 * power
    half_pi, half_pi_low, _ = _HALF_PI[1]
    angle = high * half_pi
    angle_low = c.fma(high, half_pi, -angle) + c.fma(high, half_pi_low, low * half_pi)
    angle, angle_low = quick_sum(angle, angle_low)
    finite = c.abs(x) < INFINITY
    c.store_raw(c.select(finite, angle, NAN), place)
    c.store_raw(c.select(finite, angle_low, NAN), c.offset(place, 8))
    quadrant = c.convert(quadrant, I64, True)
    c.give_back(c.select(word < 0, -quadrant, quadrant))
    return name


def _sin_of_rest(b: Builder, rest: Pair, form: Format) -> Value:
    square = rest.high * rest.high
    return rest.high + b.fma(square * rest.high, polynomial(b, square, form.of(SIN)), rest.low)


def _cos_of_rest(b: Builder, rest: Pair, form: Format) -> Value:
    square = rest.high * rest.high
    half = square * 0.5
    begun = 1.0 - half
    lost = (1.0 - begun) - half
    tail = b.fma(square * square, polynomial(b, square, form.of(COS)), lost)
    return begun + b.fma(-rest.high, rest.low, tail)


def _sin_from(b: Builder, quadrant: Value, rest: Pair, form: Format) -> Value:
    """sin(n * pi/2 + r)."""
    right = b.select((quadrant & 1) != 0, _cos_of_rest(b, rest, form), _sin_of_rest(b, rest, form))
    flip = (quadrant & 2) << (62 if form is not SINGLE else 30)
    return b.bits(b.bits(right, form.integer) ^ flip, form.element)


def sin(b: Builder, x: Value) -> Value:
    form = format_of(x)
    quadrant, rest = _reduced(b, x, form)
    return b.select(x == 0.0, x, _sin_from(b, quadrant, rest, form))


def cos(b: Builder, x: Value) -> Value:
    form = format_of(x)
    quadrant, rest = _reduced(b, x, form)
    return _sin_from(b, quadrant + 1, rest, form)


def tan(b: Builder, x: Value) -> Value:
    """tan(r), or -1 / tan(r) for odd n; the quotient uses more digits of tan(r) than the format has."""
    form = format_of(x)
    quadrant, rest = _reduced(b, x, form)
    square = rest.high * rest.high
    tail = b.fma(square * rest.high, polynomial(b, square, form.of(TAN)), b.fma(square, rest.low, rest.low))
    high = rest.high + tail
    low = tail - (high - rest.high)
    inverse = -1.0 / high
    better = b.fma(inverse, b.fma(inverse, high, 1.0) + inverse * low, inverse)
    better = b.select(high == 0.0, inverse, better)
    return b.select(x == 0.0, x, b.select((quadrant & 1) != 0, better, high))
