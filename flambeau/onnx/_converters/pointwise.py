"""Elementwise ops for which ONNX has an operator of their own, or whose bodies look at more than one element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._element_types import BFLOAT16
from .._graph import BOOL, Graph, Operand, Value
from ._table import Result, converter
from .elementwise import common_dtype, step


def plain(name: str, kind: str) -> None:
    """An op of one operand that is an operator of ONNX's."""

    @converter(name)
    def convert(g: Graph, call: Result, self: Value) -> Value:
        return g.op(kind, g.cast(self, call.dtype))


for _name, _kind in {
    "reciprocal": "Reciprocal", "relu": "Relu", "sigmoid": "Sigmoid", "sign": "Sign", "sgn": "Sign",
}.items():  # fmt: skip
    plain(_name, _kind)


@converter("round_decimals")
def round_decimals(g: Graph, call: Result, self: Value, decimals: int) -> Value:
    factor = float(10**decimals)
    return g.op("Div", g.op("Round", g.op("Mul", self, factor)), factor)


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
        return g.op("Floor", quotient) if down else step("trunc")(g, call.dtype, quotient)
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


# ----- comparison -----------------------------------------------------------------------------------------------------


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


@converter("isnan", "isinf", "isposinf", "isneginf", "isfinite", "isreal")
def classify(g: Graph, call: Result, self: Value) -> Value:
    if self.dtype.kind in "iub" or call.op == "isreal":
        answer = call.op in ("isfinite", "isreal")
        return g.op("Equal" if answer else "Less", *([g.cast(self, np.int32)] * 2), dtype=bool)
    if call.op in ("isposinf", "isneginf"):
        value = g.cast(self, np.float32) if self.dtype == BFLOAT16 else self
        below, above = int(call.op == "isneginf"), int(call.op == "isposinf")
        return g.op("IsInf", value, dtype=bool, detect_negative=below, detect_positive=above)
    return step(call.op)(g, BOOL, self)


@converter("bitwise_left_shift", "bitwise_right_shift")
def shift(g: Graph, call: Result, self: Any, other: Any) -> Value:
    left, right = beside(g, self, call.dtype), beside(g, other, call.dtype)
    factor = g.cast(g.op("Pow", g.const(2.0, np.float64), g.cast(right, np.float64)), call.dtype)
    if call.op == "bitwise_left_shift":
        return g.op("Mul", left, factor)
    return divide_whole(g, Result("div_floor", call.dtypes, call.shapes, call.transposed), left, factor)


# ----- limits, conditions, conversion ---------------------------------------------------------------------------------


@converter("at_least")
def at_least(g: Graph, call: Result, self: Value, min: Any) -> Value:
    return g.op("Max", g.cast(self, call.dtype), beside(g, min, call.dtype))


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
    left, right = (beside(g, each, common_dtype((elements, test_elements))) for each in (elements, test_elements))
    equal = g.op("Equal", g.unsqueeze(left, -1), g.flat(right), dtype=bool)
    found = g.cast(g.reduce("ReduceMax", g.cast(equal, np.int32), [-1], False), bool)
    return g.op("Not", found) if invert else found
