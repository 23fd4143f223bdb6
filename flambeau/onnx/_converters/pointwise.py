"""Elementwise ops: arithmetic, comparison, bits, rounding, conversion."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._element_types import BFLOAT16
from .._graph import BOOL, Graph, Operand, Value
from ._table import Result, converter


def plain(name: str, kind: str) -> None:
    """An op of one operand that is an operator of ONNX's."""

    @converter(name)
    def convert(g: Graph, call: Result, self: Value) -> Value:
        return g.op(kind, g.cast(self, call.dtype))


for _name, _kind in {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "log": "Log", "neg": "Neg",
    "reciprocal": "Reciprocal", "relu": "Relu", "sigmoid": "Sigmoid", "sign": "Sign", "sgn": "Sign", "sin": "Sin",
    "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}.items():  # fmt: skip
    plain(_name, _kind)


def _rounding(name: str, kind: str) -> None:
    @converter(name)
    def convert(g: Graph, call: Result, self: Value) -> Value:
        return g.op("Identity", self) if self.dtype.kind in "iu" else g.op(kind, self)


for _name, _kind in {"floor": "Floor", "ceil": "Ceil", "round": "Round"}.items():
    _rounding(_name, _kind)


@converter("trunc")
def trunc(g: Graph, call: Result, self: Value) -> Value:
    if self.dtype.kind in "iu":
        return g.op("Identity", self)
    return g.op("Mul", g.op("Sign", self), g.op("Floor", g.op("Abs", self)))


@converter("frac")
def frac(g: Graph, call: Result, self: Value) -> Value:
    return g.op("Sub", self, trunc(g, call, self))


@converter("round_decimals")
def round_decimals(g: Graph, call: Result, self: Value, decimals: int) -> Value:
    factor = float(10**decimals)
    return g.op("Div", g.op("Round", g.op("Mul", self, factor)), factor)


@converter("rsqrt")
def rsqrt(g: Graph, call: Result, self: Value) -> Value:
    return g.op("Reciprocal", g.op("Sqrt", g.cast(self, call.dtype)))


@converter("exp2")
def exp2(g: Graph, call: Result, self: Value) -> Value:
    return g.op("Exp", g.op("Mul", g.cast(self, call.dtype), math.log(2)))


@converter("expm1")
def expm1(g: Graph, call: Result, self: Value) -> Value:
    return g.op("Sub", g.op("Exp", g.cast(self, call.dtype)), 1)


@converter("log1p")
def log1p(g: Graph, call: Result, self: Value) -> Value:
    return g.op("Log", g.op("Add", g.cast(self, call.dtype), 1))


@converter("log2", "log10")
def log_of_base(g: Graph, call: Result, self: Value) -> Value:
    base = math.log(2 if call.op == "log2" else 10)
    return g.op("Div", g.op("Log", g.cast(self, call.dtype)), base)


@converter("deg2rad", "rad2deg")
def degrees(g: Graph, call: Result, self: Value) -> Value:
    return g.op("Mul", g.cast(self, call.dtype), math.pi / 180 if call.op == "deg2rad" else 180 / math.pi)


@converter("erfc")
def erfc(g: Graph, call: Result, self: Value) -> Value:
    return g.op("Sub", g.const(1, call.dtype), g.op("Erf", g.cast(self, call.dtype)))


@converter("sinc")
def sinc(g: Graph, call: Result, self: Value) -> Value:
    angle = g.op("Mul", g.cast(self, call.dtype), math.pi)
    at_zero = g.op("Equal", angle, 0, dtype=bool)
    return g.where(at_zero, 1, g.op("Div", g.op("Sin", angle), g.where(at_zero, 1, angle)))


# ----- arithmetic of two ----------------------------------------------------------------------------------------------


def beside(g: Graph, given: Any, dtype: np.dtype[Any]) -> Value:
    """An operand in the dtype in which it is computed."""
    if isinstance(given, Value):
        return g.cast(given, dtype)
    value = g.operand(given, dtype)
    assert value is not None
    return value


def arithmetic(g: Graph, call: Result, kind: str, left: Any, right: Any) -> Value:
    """Two operands, each cast to the dtype of the result; booleans are computed as numbers."""
    if call.dtype == BOOL:
        wide = np.dtype(np.int32)
        return g.cast(g.op(kind, beside(g, left, wide), beside(g, right, wide)), BOOL)
    return g.op(kind, beside(g, left, call.dtype), beside(g, right, call.dtype))


def _binary(name: str, kind: str, swapped: bool = False) -> None:
    @converter(name)
    def convert(g: Graph, call: Result, self: Any, other: Any) -> Value:
        return arithmetic(g, call, kind, other, self) if swapped else arithmetic(g, call, kind, self, other)


for _name, _kind in {"add": "Add", "sub": "Sub", "mul": "Mul", "mul_number": "Mul"}.items():
    _binary(_name, _kind)
_binary("rsub", "Sub", swapped=True)


@converter("div", "div_number")
def div(g: Graph, call: Result, self: Any, other: Any) -> Value:
    return arithmetic(g, call, "Div", self, other)


@converter("add_scaled", "sub_scaled", "rsub_scaled")
def add_scaled(g: Graph, call: Result, self: Any, other: Any, alpha: Any) -> Value:
    if call.op == "rsub_scaled":
        self, other = other, self
        return arithmetic(g, call, "Sub", self, arithmetic(g, call, "Mul", other, alpha))
    kind = "Add" if call.op == "add_scaled" else "Sub"
    return arithmetic(g, call, kind, self, arithmetic(g, call, "Mul", other, alpha))


@converter("div_floor", "floor_divide", "div_trunc", "div_trunc_half")
def divide_whole(g: Graph, call: Result, self: Any, other: Any) -> Value:
    down = call.op in ("div_floor", "floor_divide")
    if call.dtype.kind == "f":
        quotient = arithmetic(g, call, "Div", self, other)
        return g.op("Floor", quotient) if down else trunc(g, call, quotient)
    quotient = arithmetic(g, call, "Div", self, other)  # ONNX's division of integers rounds towards zero
    if not down or call.dtype.kind == "u":
        return quotient
    rest = g.op("Sub", beside(g, self, call.dtype), g.op("Mul", quotient, beside(g, other, call.dtype)))
    signs = g.op("Mul", g.op("Sign", rest), g.op("Sign", beside(g, other, call.dtype)))
    return g.op("Sub", quotient, g.cast(g.op("Less", signs, 0, dtype=bool), call.dtype))


@converter("fmod", "fmod_by_number")
def fmod(g: Graph, call: Result, self: Any, other: Any) -> Value:
    return g.op("Mod", beside(g, self, call.dtype), beside(g, other, call.dtype), fmod=1)


@converter("remainder", "remainder_by_number", "remainder_of_number")
def remainder(g: Graph, call: Result, self: Any, other: Any) -> Value:
    left, right = beside(g, self, call.dtype), beside(g, other, call.dtype)
    if call.dtype.kind != "f":
        return g.op("Mod", left, right, fmod=0)
    return g.op("Sub", left, g.op("Mul", g.op("Floor", g.op("Div", left, right)), right))


@converter("pow", "pow_of_number", "pow_number")
def power(g: Graph, call: Result, self: Any, exponent: Any) -> Value:
    base = beside(g, self, call.dtype)
    if isinstance(exponent, (int, float)) and not isinstance(exponent, bool):
        if exponent == 2:
            return g.op("Mul", base, base)
        if exponent == 0.5:
            return g.op("Sqrt", base)
    return g.op("Pow", base, beside(g, exponent, call.dtype))


@converter("maximum", "minimum", "fmax", "fmin")
def extreme(g: Graph, call: Result, self: Any, other: Any) -> Value:
    kind = "Max" if "max" in call.op else "Min"
    left, right = beside(g, self, call.dtype), beside(g, other, call.dtype)
    if call.dtype == BOOL:
        return g.op("Or" if kind == "Max" else "And", left, right)
    if call.op in ("fmax", "fmin") and call.dtype.kind == "f":
        left, right = (
            g.where(g.op("IsNaN", left, dtype=bool), right, left),
            g.where(g.op("IsNaN", right, dtype=bool), left, right),
        )
    return g.op(kind, left, right)


@converter("atan2")
def atan2(g: Graph, call: Result, self: Any, other: Any) -> Value:
    y, x = beside(g, self, call.dtype), beside(g, other, call.dtype)
    safe = g.where(g.op("Equal", x, 0, dtype=bool), 1, x)
    slope = g.op("Atan", g.op("Div", y, safe))
    half = g.where(g.op("Less", y, 0, dtype=bool), g.const(-math.pi, call.dtype), g.const(math.pi, call.dtype))
    left = g.where(g.op("Less", x, 0, dtype=bool), g.op("Add", slope, half), slope)
    upright = g.op("Mul", g.op("Sign", y), math.pi / 2)
    return g.where(g.op("Equal", x, 0, dtype=bool), upright, left)


@converter("hypot")
def hypot(g: Graph, call: Result, self: Any, other: Any) -> Value:
    left, right = beside(g, self, call.dtype), beside(g, other, call.dtype)
    return g.op("Sqrt", g.op("Add", g.op("Mul", left, left), g.op("Mul", right, right)))


@converter("copysign", "copysign_of_number")
def copysign(g: Graph, call: Result, self: Any, other: Any) -> Value:
    size, like = g.op("Abs", beside(g, self, call.dtype)), beside(g, other, call.dtype)
    # 1 / -0 is negative: the sign of a zero counts.
    below = g.op("Or", g.op("Less", like, 0, dtype=bool), g.op("Less", g.op("Reciprocal", like), 0, dtype=bool))
    return g.where(below, g.op("Neg", size), size)


@converter("heaviside")
def heaviside(g: Graph, call: Result, self: Any, other: Any) -> Value:
    value = beside(g, self, call.dtype)
    above = g.cast(g.op("Greater", value, 0, dtype=bool), call.dtype)
    return g.where(g.op("Equal", value, 0, dtype=bool), beside(g, other, call.dtype), above)


@converter("logaddexp", "logaddexp2")
def logaddexp(g: Graph, call: Result, self: Any, other: Any) -> Value:
    unit = 1.0 if call.op == "logaddexp" else math.log(2)
    left, right = beside(g, self, call.dtype), beside(g, other, call.dtype)
    high = g.op("Max", left, right)
    gap = g.op("Mul", g.op("Neg", g.op("Abs", g.op("Sub", left, right))), unit)
    return g.op("Add", high, g.op("Div", g.op("Log", g.op("Add", g.op("Exp", gap), 1)), unit))


@converter("xlogy", "xlogy_of_number", "xlogy_with_number", "special_xlog1py", "special_xlog1py_of_number",
           "special_xlog1py_with_number")  # fmt: skip
def xlogy(g: Graph, call: Result, self: Any, other: Any) -> Value:
    left, right = beside(g, self, call.dtype), beside(g, other, call.dtype)
    inner = g.op("Add", right, 1) if "log1py" in call.op else right
    at_zero = g.op("And", g.op("Equal", left, 0, dtype=bool), g.op("Not", g.op("IsNaN", right, dtype=bool)))
    return g.where(at_zero, 0, g.op("Mul", left, g.op("Log", inner)))


@converter("ldexp")
def ldexp(g: Graph, call: Result, self: Any, other: Any) -> Value:
    return g.op("Mul", beside(g, self, call.dtype), g.op("Pow", g.const(2, call.dtype), beside(g, other, call.dtype)))


# ----- of three -------------------------------------------------------------------------------------------------------


@converter("addcmul", "addcdiv")
def addc(g: Graph, call: Result, self: Value, tensor1: Value, tensor2: Value, value: Any) -> Value:
    joined = arithmetic(g, call, "Mul" if call.op == "addcmul" else "Div", tensor1, tensor2)
    return arithmetic(g, call, "Add", self, joined if value == 1 else arithmetic(g, call, "Mul", joined, value))


@converter("lerp_number", "lerp_tensor")
def lerp(g: Graph, call: Result, self: Value, end: Value, weight: Any) -> Value:
    gap = g.op("Sub", end, self)
    return g.op("Add", self, g.op("Mul", gap, beside(g, weight, call.dtype)))


# ----- comparison -----------------------------------------------------------------------------------------------------

_LESS_THAN_NUMBERS = {BOOL, BFLOAT16}


def common(g: Graph, left: Any, right: Any) -> tuple[Value, Value]:
    """Two operands in the dtype in which they are compared."""
    kinds = [each.dtype for each in (left, right) if isinstance(each, Value)]
    dtype = kinds[0]
    if len(kinds) == 2 and kinds[0] != kinds[1]:
        dtype = _promoted(left, right)
    elif len(kinds) == 1:
        number = right if isinstance(left, Value) else left
        if isinstance(number, float) and dtype.kind in "iub":
            dtype = np.dtype(np.float32)
        elif isinstance(number, int) and not isinstance(number, bool) and dtype == BOOL:
            dtype = np.dtype(np.int64)
    return beside(g, left, dtype), beside(g, right, dtype)


def _promoted(left: Value, right: Value) -> np.dtype[Any]:
    order = "biufc"
    kinds = sorted((left, right), key=lambda each: order.index(each.dtype.kind) if each.dtype.kind in order else 3)
    low, high = kinds
    if low.dtype.kind == high.dtype.kind:
        return np.promote_types(low.dtype, high.dtype)
    return high.dtype if high.dtype.kind == "f" or low.dtype == BOOL else np.promote_types(low.dtype, high.dtype)


def _comparison(name: str, kind: str, negated: bool = False) -> None:
    @converter(name)
    def convert(g: Graph, call: Result, self: Any, other: Any) -> Value:
        left, right = common(g, self, other)
        if kind != "Equal" and left.dtype in _LESS_THAN_NUMBERS:
            wide = np.int32 if left.dtype == BOOL else np.float32
            left, right = g.cast(left, wide), g.cast(right, wide)
        made = g.op(kind, left, right, dtype=bool)
        return g.op("Not", made) if negated else made


for _name, _kind in {
    "eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual",
}.items():  # fmt: skip
    _comparison(_name, _kind)
_comparison("ne", "Equal", negated=True)


@converter("isclose")
def isclose(g: Graph, call: Result, self: Value, other: Value, rtol: float, atol: float, equal_nan: bool) -> Value:
    left, right = (g.cast(each, np.float32) if each.dtype.kind != "f" else each for each in (self, other))
    gap = g.op("Abs", g.op("Sub", left, right))
    room = g.op("Add", g.op("Mul", g.op("Abs", right), rtol), atol)
    finite = g.op("Not", g.op("IsInf", right, dtype=bool))
    close = g.op("And", g.op("LessOrEqual", gap, room, dtype=bool), finite)
    close = g.op("Or", close, g.op("Equal", left, right, dtype=bool))
    if equal_nan:
        close = g.op("Or", close, g.op("And", g.op("IsNaN", left, dtype=bool), g.op("IsNaN", right, dtype=bool)))
    return close


@converter("isnan", "isinf", "isposinf", "isneginf", "isfinite", "isreal", "signbit")
def classify(g: Graph, call: Result, self: Value) -> Value:
    if call.op == "signbit":
        return g.op("Less", self, 0, dtype=bool)
    if self.dtype.kind in "iub" or call.op == "isreal":
        answer = call.op in ("isfinite", "isreal")
        return g.op("Equal" if answer else "Less", *([g.cast(self, np.int32)] * 2), dtype=bool)
    if self.dtype == BFLOAT16:
        self = g.cast(self, np.float32)
    if call.op == "isnan":
        return g.op("IsNaN", self, dtype=bool)
    if call.op == "isfinite":
        return g.op("Not", g.op("Or", g.op("IsNaN", self, dtype=bool), g.op("IsInf", self, dtype=bool)))
    below, above = int(call.op != "isposinf"), int(call.op != "isneginf")
    return g.op("IsInf", self, dtype=bool, detect_negative=below, detect_positive=above)


@converter("logical_and", "logical_or", "logical_xor")
def logical(g: Graph, call: Result, self: Any, other: Any) -> Value:
    kind = call.op.removeprefix("logical_").capitalize()
    return g.op(kind, truth(g, self), truth(g, other))


def truth(g: Graph, value: Any) -> Value:
    """Whether elements are not zero."""
    return g.cast(value, bool) if isinstance(value, Value) else g.const(bool(value), bool)


@converter("logical_not")
def logical_not(g: Graph, call: Result, self: Value) -> Value:
    return g.op("Not", truth(g, self))


@converter("bitwise_and", "bitwise_or", "bitwise_xor")
def bitwise(g: Graph, call: Result, self: Any, other: Any) -> Value:
    kind = call.op.removeprefix("bitwise_").capitalize()
    left, right = beside(g, self, call.dtype), beside(g, other, call.dtype)
    return g.op(kind if call.dtype == BOOL else f"Bitwise{kind}", left, right)


@converter("bitwise_not")
def bitwise_not(g: Graph, call: Result, self: Value) -> Value:
    return g.op("Not" if call.dtype == BOOL else "BitwiseNot", self)


@converter("bitwise_left_shift", "bitwise_right_shift")
def shift(g: Graph, call: Result, self: Any, other: Any) -> Value:
    left, right = beside(g, self, call.dtype), beside(g, other, call.dtype)
    factor = g.cast(g.op("Pow", g.const(2.0, np.float64), g.cast(right, np.float64)), call.dtype)
    if call.op == "bitwise_left_shift":
        return g.op("Mul", left, factor)
    return divide_whole(g, Result("div_floor", call.dtypes, call.shapes, call.transposed), left, factor)


# ----- limits, conditions, conversion ---------------------------------------------------------------------------------


@converter("clamp_numbers", "clamp_tensors")
def clamp(g: Graph, call: Result, self: Value, min: Any, max: Any) -> Value:
    value = g.cast(self, call.dtype)
    if min is not None:
        value = g.op("Max", value, beside(g, min, call.dtype))
    return value if max is None else g.op("Min", value, beside(g, max, call.dtype))


@converter("clamp_min_number", "clamp_min_tensor", "at_least")
def clamp_min(g: Graph, call: Result, self: Value, min: Any) -> Value:
    return clamp(g, call, self, min, None)


@converter("clamp_max_number", "clamp_max_tensor")
def clamp_max(g: Graph, call: Result, self: Value, max: Any) -> Value:
    return clamp(g, call, self, None, max)


@converter("where")
def where(g: Graph, call: Result, condition: Value, self: Operand, other: Operand, dtype: Any) -> Value:
    return g.op(
        "Where", g.cast(condition, bool), beside(g, self, call.dtype), beside(g, other, call.dtype), dtype=call.dtype
    )


@converter("masked_fill_number", "masked_fill_tensor")
def masked_fill(g: Graph, call: Result, self: Value, mask: Value, value: Any) -> Value:
    return g.op("Where", g.cast(mask, bool), beside(g, value, call.dtype), self, dtype=call.dtype)


@converter("only_where")
def only_where(g: Graph, call: Result, self: Value, condition: Value) -> Value:
    return g.op("Where", condition, self, g.const(0, self.dtype), dtype=self.dtype)


@converter("nan_to_num")
def nan_to_num(g: Graph, call: Result, self: Value, nan: Any, posinf: Any, neginf: Any) -> Value:
    if self.dtype.kind != "f":
        return g.op("Identity", self)
    limits = np.finfo(self.dtype)
    value = g.where(g.op("IsNaN", self, dtype=bool), 0.0 if nan is None else nan, self)
    above = g.op("IsInf", value, dtype=bool, detect_negative=0)
    value = g.where(above, float(limits.max) if posinf is None else posinf, value)
    below = g.op("IsInf", value, dtype=bool, detect_positive=0)
    return g.where(below, float(limits.min) if neginf is None else neginf, value)


@converter("to_copy", "to_device")
def to_copy(g: Graph, call: Result, self: Value, *ignored: Any) -> Value:
    return g.cast(self, call.dtype) if self.dtype != call.dtype else g.op("Identity", self)


@converter("clone", "contiguous_clone", "alias", "alias_copy", "detach", "restride", "copied_like", "conjugate")
def same(g: Graph, call: Result, self: Value, *ignored: Any) -> Value:
    return Value(self.name, self.dtype, self.shape)


@converter("angle")
def angle(g: Graph, call: Result, self: Value) -> Value:
    value = g.cast(self, call.dtype)
    made = g.where(g.op("Less", value, 0, dtype=bool), g.const(math.pi, call.dtype), g.const(0, call.dtype))
    return g.where(g.op("IsNaN", value, dtype=bool), value, made)


@converter("isin")
def isin(g: Graph, call: Result, elements: Any, test_elements: Any, invert: bool) -> Value:
    left, right = common(g, elements, test_elements)
    equal = g.op("Equal", g.unsqueeze(left, -1), g.flat(right), dtype=bool)
    found = g.cast(g.reduce("ReduceMax", g.cast(equal, np.int32), [-1], False), bool)
    return g.op("Not", found) if invert else found
