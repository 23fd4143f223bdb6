"""A `Builder` that computes: its values are arrays, and what would be written as code is done at once by NumPy.

The functions of generated code (`functions/`) and the steps of programs (`lower.py`) run with it as they are. Values
have one lane; the elements of an array take the place of lanes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..build import Builder, Operand, Value
from ..ir import ir
from ..types import BOOL, F16, F32, F64, I8, I16, I32, I64, Scalar
from .fused import fma

Array = Any

DTYPES: dict[Any, np.dtype[Any]] = {
    each: np.dtype(name)
    for each, name in (
        (BOOL, "bool"),
        (I8, "int8"),
        (I16, "int16"),
        (I32, "int32"),
        (I64, "int64"),
        (F16, "float16"),
        (F32, "float32"),
        (F64, "float64"),
    )
}
"""The dtype of arrays that stand for numbers of a type; integers are kept with a sign, whatever they mean."""


class Numbers:
    """An array in the place of a register."""

    __slots__ = ("array", "type")

    def __init__(self, array: Array, type_: Any) -> None:
        self.array = array
        self.type = type_


def _unsigned(array: Array) -> Array:
    return np.asarray(array).view(f"u{array.dtype.itemsize}") if array.dtype != np.bool_ else array


def _like(first: Numbers, function: Callable[..., Array]) -> Callable[..., Numbers]:
    return lambda *arrays: Numbers(function(*arrays), first.type)


def _of_two(function: Callable[[Array, Array], Array]) -> Callable[[Any, Numbers, Numbers], Numbers]:
    return lambda self, left, right: Numbers(function(left.array, right.array), left.type)


def _unsigned_two(function: Callable[[Array, Array], Array]) -> Callable[[Any, Numbers, Numbers], Numbers]:
    def run(self: Any, left: Numbers, right: Numbers) -> Numbers:
        found = np.asarray(function(_unsigned(left.array), _unsigned(right.array)))
        return Numbers(found.view(left.array.dtype), left.type)

    return run


def _quotient(left: Array, right: Array) -> Array:
    """The quotient of two integers, rounded towards zero as processors do."""
    return np.where((left < 0) ^ (right < 0), -(np.abs(left) // np.abs(right)), np.abs(left) // np.abs(right))


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Instructions:
    """The instructions that `Value` and `Builder` ask for, under the names that LLVM's builder has for them."""

    fadd = add = _of_two(operator.add)
    fsub = sub = _of_two(operator.sub)
    fmul = mul = _of_two(operator.mul)
    fdiv = _of_two(operator.truediv)
    sdiv = _of_two(_quotient)
    udiv = _unsigned_two(operator.floordiv)
    frem = _of_two(np.fmod)
    srem = _of_two(np.fmod)
    urem = _unsigned_two(operator.mod)
    and_ = _of_two(operator.and_)
    or_ = _of_two(operator.or_)
    xor = _of_two(operator.xor)
    shl = _of_two(operator.lshift)
    ashr = _of_two(operator.rshift)
    lshr = _unsigned_two(operator.rshift)

    def fneg(self, value: Numbers) -> Numbers:
        return Numbers(-value.array, value.type)

    neg = fneg

    def not_(self, value: Numbers) -> Numbers:
        return Numbers(~value.array, value.type)

    def fcmp_ordered(self, how: str, left: Numbers, right: Numbers) -> Numbers:
        return Numbers(_COMPARISONS[how](left.array, right.array), BOOL)

    fcmp_unordered = icmp_signed = fcmp_ordered

    def icmp_unsigned(self, how: str, left: Numbers, right: Numbers) -> Numbers:
        return Numbers(_COMPARISONS[how](_unsigned(left.array), _unsigned(right.array)), BOOL)

    def select(self, condition: Numbers, left: Numbers, right: Numbers) -> Numbers:
        return Numbers(np.where(condition.array, left.array, right.array), left.type)

    def bitcast(self, value: Numbers, type_: Any) -> Numbers:
        return Numbers(np.asarray(value.array).view(DTYPES[type_]), type_)

    def _cast(self, value: Numbers, type_: Any) -> Numbers:
        return Numbers(value.array.astype(DTYPES[type_]), type_)

    fpext = fptrunc = sitofp = sext = trunc = _cast

    def uitofp(self, value: Numbers, type_: Any) -> Numbers:
        return Numbers(_unsigned(value.array).astype(DTYPES[type_]), type_)

    def zext(self, value: Numbers, type_: Any) -> Numbers:
        return Numbers(_unsigned(value.array).astype(DTYPES[type_]), type_)


class Held:
    """A variable of a kernel, which loops may assign again."""

    __slots__ = ("_builder", "_type", "_value")

    def __init__(self, builder: Evaluator, type_: Any, initial: Operand | None) -> None:
        self._builder, self._type = builder, type_
        self._value: Value | None = None if initial is None else builder.constant(type_, initial)

    @property
    def value(self) -> Value:
        assert self._value is not None
        return self._value

    @value.setter
    def value(self, new: Operand) -> None:
        self._value = self._builder.constant(self._type, new)

    def add(self, other: Operand) -> None:
        """Add a value to the variable."""
        self.value = self.value + other


class Evaluator(Builder):
    """A builder whose values are computed as soon as they are asked for."""

    evaluates = True

    def __init__(self) -> None:
        self.ir = Instructions()

    def given(self, array: Array, type_: Any, signed: bool = True) -> Value:
        """An array as a value."""
        return Value(self, Numbers(array, type_), signed)

    def constant(self, type_: Any, value: Operand) -> Value:
        if isinstance(value, Value):
            return value
        dtype = DTYPES[type_]
        if dtype.kind == "i":
            number = int(value) & ((1 << 8 * dtype.itemsize) - 1)
            return self.given(np.array(number, f"u{dtype.itemsize}").view(dtype)[()], type_)
        return self.given(dtype.type(value), type_)

    def splat(self, value: Value, lanes: int) -> Value:
        return value

    def intrinsic(
        self,
        name: str,
        returns: Any,
        arguments: Sequence[Value],
        overloads: Sequence[Any],
        signed: bool = True,
        flags: Sequence[str] = (),
    ) -> Value:
        arrays = [each.ir.array for each in arguments]
        if name.endswith(".sat"):
            return self.given(_saturated(arrays[0], DTYPES[returns], name == "llvm.fptoui.sat"), returns, signed)
        return self.given(_INTRINSICS[name.removeprefix("llvm.")](*arrays), returns, signed)

    def variable(self, type_: Any, initial: Operand | None = None, lanes: int = 1, signed: bool = True) -> Any:
        return Held(self, type_, initial)

    @contextmanager
    def when(self, condition: Value, likely: bool | None = None) -> Iterator[None]:
        """The body runs in any case: what it does to elements must not depend on others."""
        yield

    def fmod(self, x: Value, y: Value) -> Value:
        """What division leaves: it is exact, and so NumPy's is that of generated code."""
        return self.given(np.fmod(x.ir.array, y.ir.array), x.type)

    def load_from(self, array: Array, scalar: Scalar) -> Value:
        """The elements of an array, in the type in which they are computed with."""
        if scalar.name == "bfloat16":
            raw = self.given(np.asarray(array).view(np.int16), I16, False)
            return self.unpacked(raw, scalar)
        if scalar.name == "bool":
            return self.given(np.asarray(array).view(np.bool_), BOOL, False)
        value = self.given(np.asarray(array).view(DTYPES[scalar.memory]), scalar.memory, scalar.is_signed)
        return self.unpacked(value, scalar)

    def store_into(self, array: Array, scalar: Scalar, value: Operand) -> None:
        """Write values to an array."""
        value = self.packed(self.constant(scalar.compute, value), scalar)
        array.view(DTYPES[scalar.memory])[...] = value.ir.array


def _saturated(array: Array, dtype: np.dtype[Any], unsigned: bool) -> Array:
    target = np.dtype(f"u{dtype.itemsize}") if unsigned else dtype
    ends = np.iinfo(target)
    wide = np.where(array != array, 0, array).astype(np.float64)
    inside = (wide > float(ends.min)) & (wide < float(ends.max))
    found = np.where(inside, wide, 0).astype(target)
    found = np.where(wide >= float(ends.max), target.type(ends.max), found)
    return np.where(wide <= float(ends.min), target.type(ends.min), found).view(dtype)


def _maximum(a: Array, b: Array) -> Array:
    """NaN wins, and of zeros the positive one."""
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


def _minimum(a: Array, b: Array) -> Array:
    return np.where((a == 0) & (b == 0), -(-a - b), np.minimum(a, b))


_INTRINSICS: dict[str, Callable[..., Array]] = {
    "fma": fma,
    "sqrt": np.sqrt,
    "fabs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "roundeven": np.rint,
    "copysign": np.copysign,
    "arithmetic.fence": lambda x: x,
    "maxnum": np.fmax,
    "minnum": np.fmin,
    "smax": np.maximum,
    "smin": np.minimum,
    "umax": lambda a, b: np.maximum(_unsigned(a), _unsigned(b)).view(a.dtype),
    "umin": lambda a, b: np.minimum(_unsigned(a), _unsigned(b)).view(a.dtype),
    "maximum": _maximum,
    "minimum": _minimum,
}


def type_of(scalar: Scalar) -> ir.Type:
    """The type in which elements are computed with."""
    return scalar.compute
