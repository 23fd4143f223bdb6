"""What the functions are made of: the two formats of floats, polynomials, and access to exponents and signs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..build import Builder, Operand, Value
from ..ir import ir
from ..types import BOOL, F32, F64, I32, I64
from .coefficients import Table

INFINITY = float("inf")
NAN = float("nan")


@dataclass(frozen=True)
class Format:
    """What is particular to a format of floats."""

    element: ir.Type
    integer: ir.Type
    """An integer of the same width."""
    digits: int
    """Digits of the fraction that are stored."""
    bias: int
    """The exponent field of 1.0."""
    smallest: float
    """The smallest normal number."""
    whole: float
    """Added to a small number, it rounds that to a whole number, which is then in the sum's last digits."""

    def of(self, table: Table) -> tuple[float, ...]:
        return table.single if self is SINGLE else table.double

    def pick(self, single: float, double: float) -> float:
        """A number that depends on the format."""
        return single if self is SINGLE else double


SINGLE = Format(F32, I32, 23, 127, 2.0**-126, 1.5 * 2.0**23)
DOUBLE = Format(F64, I64, 52, 1023, 2.0**-1022, 1.5 * 2.0**52)


def format_of(x: Value) -> Format:
    """The format of a float or of a vector of floats."""
    if x.element == F32:
        return SINGLE
    if x.element == F64:
        return DOUBLE
    raise TypeError(f"elementary functions are for float32 and float64, not for {x.element}")


def polynomial(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """The sum of `coefficients`, lowest power first, times powers of `x`.

    Pairs of neighbours, which do not wait for each other, are the coefficients of a polynomial in the square: fewer
    instructions than with one after the other where a multiplication with addition overwrites one of its operands.
    """
    terms = [
        b.fma(x, upper, b.constant(x.type, lower))
        for lower, upper in zip(coefficients[::2], coefficients[1::2], strict=False)
    ]
    if len(coefficients) % 2:
        terms.append(b.constant(x.type, coefficients[-1]))
    total = terms.pop()
    square = x * x
    for term in reversed(terms):
        total = b.fma(total, square, term)
    return total


def shifted_exponent(n: int, form: Format) -> int:
    """A whole number in the form in which exponents are computed: see `power_of_two`."""
    return n + 2 * form.bias


def power_of_two(b: Builder, exponent: Value, form: Format) -> Value:
    """2 to a whole power in the range of normal numbers.

    Exponents are integers with twice the bias added, which saves instructions here and in `scaled`, and any multiple of
    2 to the power of the number of digits.
    """
    return b.bits((exponent - form.bias) << form.digits, form.element)


def scaled(b: Builder, x: Value, exponent: Value, form: Format) -> Value:
    """`x`, about 1, times 2 to a whole power; infinite, denormal and zero results included, rounded once."""
    half = exponent >> 1
    other = exponent - half
    return x * b.bits(half << form.digits, form.element) * b.bits(other << form.digits, form.element)


def whole_part(b: Builder, x: Value, factor: float, form: Format) -> tuple[Value, Value]:
    """The whole number nearest to `x * factor`, as a float and as an exponent. It must not be large."""
    origin = form.whole + shifted_exponent(0, form)
    shifted = b.fma(x, factor, origin) if factor != 1.0 else x + origin
    return shifted - origin, b.bits(shifted, form.integer)


def with_sign_of(b: Builder, magnitude: Value, x: Operand) -> Value:
    """The size of `magnitude` with the sign of `x`."""
    return b.copysign(magnitude, x)


def is_negative(b: Builder, x: Value) -> Value:
    """Whether the sign is set; negative zero has it."""
    return b.bits(x, format_of(x).integer) < 0


def any_lane(b: Builder, condition: Value) -> Value:
    """Whether a condition holds anywhere."""
    if condition.lanes == 1:
        return condition
    return b.intrinsic("llvm.vector.reduce.or", BOOL, [condition], [condition.type])


class Pair(NamedTuple):
    """A number as the sum of two floats: the second one is what the rounding of the first has lost."""

    high: Value
    low: Value


def product(b: Builder, x: Value, y: Operand) -> Pair:
    """`x * y` exactly."""
    high = x * y
    return Pair(high, b.fma(x, y, -high))


def quick_sum(x: Value, y: Value) -> Pair:
    """`x + y` exactly, for `x` that is not smaller than `y` in size, or 0."""
    high = x + y
    return Pair(high, y - (high - x))


def exact_sum(x: Value, y: Operand) -> Pair:
    """`x + y` exactly."""
    high = x + y
    part = high - x
    return Pair(high, (x - (high - part)) + (y - part))
