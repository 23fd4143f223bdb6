"""From the steps of a program to instructions, for one element or a vector of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .build import Builder, Value
from .expr import Program, Untraceable
from .functions import FUNCTIONS
from .ir import ir
from .types import BOOL, F32, SCALARS

Operation = Callable[..., Value]


def run_program(b: Builder, program: Program, inputs: Sequence[Value], lanes: int) -> list[Value]:
    """Write the steps; `inputs` are in the types that the program computes with. The results, in vectors of `lanes`."""
    values: list[Value] = []
    for name, type_name, *operands in program.steps:
        scalar = SCALARS[type_name]
        if name == "input":
            value = inputs[operands[0]]
        elif name == "constant":
            value = constant(b, type_name, operands[0])
        elif name == "cast":
            value = b.convert(values[operands[0]], scalar.compute, scalar.is_signed)
        else:
            value = operation(name)(b, *[values[number] for number in operands])
        value.signed = scalar.is_signed
        values.append(value)
    return [b.splat(values[number], lanes) for number in program.results]


def constant(b: Builder, type_name: str, text: str) -> Value:
    """A number from the text that a program keeps of it."""
    number: Any = float.fromhex(text) if type_name.startswith("float") else int(text)
    return b.constant(SCALARS[type_name].compute, number)


def operation(name: str) -> Operation:
    """How a step is computed; `Untraceable` if there is no way."""
    found = _OPERATIONS.get(name) or FUNCTIONS.get(name)
    if found is None:
        raise Untraceable(f"no code for {name}")
    return found


def can_lower(program: Program) -> bool:
    """Whether every step has code for the types that it is about."""
    for name, type_name, *operands in program.steps:
        if name in ("input", "constant", "cast"):
            continue
        if name not in _OPERATIONS:
            operand_types = {program.steps[number][1] for number in operands}
            if name not in FUNCTIONS or not operand_types <= {"float32", "float64"} or type_name == "bool":
                return False
    return True


def _divide(b: Builder, x: Value, y: Value) -> Value:
    if not x.is_float:
        raise Untraceable("a quotient of integers")
    return x / y


def _sign(b: Builder, x: Value) -> Value:
    one = b.constant(x.type, 1)
    zero = b.constant(x.type, 0)
    signs = b.select(x > 0, one, b.select(x < 0, -one, zero)) if x.signed or x.is_float else b.select(x > 0, one, zero)
    return b.select(x != x, x, signs) if x.is_float else signs


def _bits_of(b: Builder, x: Value) -> Value:
    bits = b.bits(x, ir.IntType(32 if x.element == F32 else 64))
    bits.signed = True
    return bits


def _next_after(b: Builder, x: Value, y: Value) -> Value:
    """The neighbour of x in the direction of y: its bits, counted up or down."""
    bits = _bits_of(b, x)
    away = (x < y) == (x > 0)  # from zero
    moved = b.bits(bits + b.select(away, b.constant(bits.type, 1), b.constant(bits.type, -1)), x.element)
    least = b.copysign(b.bits(b.constant(bits.type, 1), x.element), y)
    near = b.select(x == y, y, b.select(x == 0, least, moved))
    return b.select((x != x) | (y != y), x + y, near)


def _is_finite(b: Builder, x: Value) -> Value:
    return b.abs(x) < float("inf")


def _truth(b: Builder, x: Value) -> Value:
    return b.convert(x, BOOL)


def _invert(b: Builder, x: Value) -> Value:
    return ~x


def _power_of_two_shift(b: Builder, x: Value, y: Value, left: bool) -> Value:
    """Shifts by more than the width give 0, or the sign: LLVM leaves them undefined."""
    width = x.element.width
    y.signed = x.signed
    inside = (y >= 0) & (y < width)
    safe = b.select(inside, y, b.constant(y.type, 0))
    if left:
        return b.select(inside, x << safe, b.constant(x.type, 0))
    beyond = x >> b.constant(x.type, width - 1) if x.signed else b.constant(x.type, 0)
    return b.select(inside, x >> safe, beyond)


_OPERATIONS: dict[str, Operation] = {
    "add": lambda b, x, y: x | y if x.element == BOOL else x + y,
    "subtract": lambda b, x, y: x - y,
    "multiply": lambda b, x, y: x & y if x.element == BOOL else x * y,
    "divide": _divide,
    "negative": lambda b, x: -x,
    "positive": lambda b, x: x,
    "absolute": lambda b, x: x if x.element == BOOL else b.abs(x),
    "fabs": lambda b, x: b.abs(x),
    "square": lambda b, x: x * x,
    "sqrt": lambda b, x: b.sqrt(x),
    "fma": lambda b, x, y, z: b.fma(x, y, z),
    "reciprocal": lambda b, x: _divide(b, b.constant(x.type, 1), x),
    "floor": lambda b, x: b.floor(x) if x.is_float else x,
    "ceil": lambda b, x: b.ceil(x) if x.is_float else x,
    "trunc": lambda b, x: b.trunc(x) if x.is_float else x,
    "rint": lambda b, x: b.rint(x),
    "maximum": lambda b, x, y: x | y if x.element == BOOL else b.maximum(x, y),
    "minimum": lambda b, x, y: x & y if x.element == BOOL else b.minimum(x, y),
    "fmax": lambda b, x, y: b.larger(x, y),  # a number wins against NaN
    "fmin": lambda b, x, y: b.smaller(x, y),
    "less": lambda b, x, y: x < y,
    "less_equal": lambda b, x, y: x <= y,
    "greater": lambda b, x, y: x > y,
    "greater_equal": lambda b, x, y: x >= y,
    "equal": lambda b, x, y: x == y,
    "not_equal": lambda b, x, y: x != y,
    "logical_and": lambda b, x, y: _truth(b, x) & _truth(b, y),
    "logical_or": lambda b, x, y: _truth(b, x) | _truth(b, y),
    "logical_xor": lambda b, x, y: _truth(b, x) ^ _truth(b, y),
    "logical_not": lambda b, x: ~_truth(b, x),
    "bitwise_and": lambda b, x, y: x & y,
    "bitwise_or": lambda b, x, y: x | y,
    "bitwise_xor": lambda b, x, y: x ^ y,
    "invert": _invert,
    "left_shift": lambda b, x, y: _power_of_two_shift(b, x, y, True),
    "right_shift": lambda b, x, y: _power_of_two_shift(b, x, y, False),
    "isnan": lambda b, x: x != x,
    "isinf": lambda b, x: b.abs(x) == float("inf"),
    "isfinite": _is_finite,
    "signbit": lambda b, x: _bits_of(b, x) < 0,
    "copysign": lambda b, x, y: b.copysign(*b.matched(x, y)),
    "nextafter": _next_after,
    "sign": _sign,
    "select": lambda b, condition, x, y: b.select(condition, x, y),
    "round_float16": lambda b, x: b.unpacked(b.packed(x, SCALARS["float16"]), SCALARS["float16"]),
    "round_bfloat16": lambda b, x: b.unpacked(b.packed(x, SCALARS["bfloat16"]), SCALARS["bfloat16"]),
}
