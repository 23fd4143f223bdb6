"""Python's operators on tensors.

Operands of foreign types give NotImplemented, so that Python asks the other operand, and says what it always says if
that does not know either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.dtype import BOOL, FLOAT, bfloat16, float64
from ..._core.kind import kind_of_array
from ..._core.modes import Ruled
from ..._core.tensor import DIRECT_TYPES, PLAIN_TYPES, Tensor
from ..._dispatch.arguments.autocast_rules import RULED
from ..._dispatch.arguments.promotion import is_number
from ..._dispatch.call.elementwise import short_binary
from ..._dispatch.changes.inplace import run_inplace
from ..._dispatch.public.overrides import has_override, run_override, shown_as_function
from ..._dispatch.public.registry import METHODS, export_method
from ..pointwise.binary import (
    _add,
    _no_bools,
    _rsub,
    _sub,
    _true_divide,
    add_,
    floor_divide,
    mul,
    pow,
    remainder,
    rsub,
    sub_,
)
from ..pointwise.bitwise import bitwise_and, bitwise_left_shift, bitwise_or, bitwise_right_shift, bitwise_xor
from ..pointwise.compare import eq, ge, gt, le, lt, ne
from ..pointwise.unary import bitwise_not, reciprocal

Operator = Callable[[Any, Any], Any]
_NUMBERS = frozenset((float, int, bool, complex))


def _operand(value: Any) -> bool:
    """Whether an operator takes `value` as its other side."""
    return isinstance(value, (Tensor, np.ndarray)) or is_number(value)


def _beside_array(input: Tensor, array: Any, divides: bool) -> tuple[Tensor, Tensor]:
    """Both operands where the second is an array of NumPy's: in PyTorch NumPy computes then, and its rules find the
    type of the result, for which an array without dimensions counts like any other.
    """
    from ..create.constants import from_numpy

    other = from_numpy(array)
    if input._kind.dtype is bfloat16:  # which NumPy does not know
        return input, other
    common = kind_of_array(np.result_type(input._kind.dtype.numpy, array.dtype), input._kind.device).dtype
    if divides and common.category < FLOAT:
        common = float64
    return input.to(common), other.to(common)


def operator(function: Callable[..., Any], name: str, backwards: bool = False, reflected: bool = False) -> Operator:
    """Make the operator `name` a method of tensors: it runs `function`; `backwards`: with its operands exchanged.

    `reflected`: the operator stands for `other <operator> input`, and `function` takes `input` first all the same.
    """

    op = getattr(function, "op", None)
    asks = op is not None and shown_as_function(name)  # it looks for overrides itself, under the name they expect

    def reflection(input: Any, other: Any, *, out: Any = None) -> Any:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        return forwards(input, other, out)

    def forwards(input: Any, other: Any, out: Any = None) -> Any:
        kind = type(other)
        if (kind in PLAIN_TYPES or kind in _NUMBERS) and (asks or type(input) in DIRECT_TYPES) and out is None:
            return function(input, other)
        return rarely(input, other, out=out)

    def rarely(input: Any, other: Any, *, out: Any = None) -> Any:
        if out is not None:
            return NotImplemented  # operators have no `out=`: as with an operand that they do not take
        if has_override((input, other)):
            return run_override(run, (input, other), (input, other), {})
        if not _operand(other) or not (isinstance(input, Tensor) or (backwards and is_number(input))):
            return NotImplemented
        if isinstance(other, np.ndarray) and isinstance(input, Tensor):
            input, other = _beside_array(input, other, name == "__truediv__")
        return function(other, input) if backwards else function(input, other)

    run = rarely if backwards else reflection if reflected else forwards
    if run is forwards and op is not None:
        run = short_binary(op, op.title, forwards, casts=True)  # straight to the kernel, with no function in between
    run.__name__ = run.__qualname__ = name
    export_method(run, name)
    return run


def _checked_sub(input: Tensor, other: Any) -> Tensor:
    if (
        type(other) is bool
        or input._kind.dtype.category == BOOL
        or (isinstance(other, Tensor) and other._kind.dtype.category == BOOL)
    ):
        _no_bools(input, other)
    return _sub(input, other)


vars(_checked_sub)["op"] = _sub.op  # no bools are on the short path of this op


def _reversed_sub(input: Any, other: Any) -> Tensor:
    if type(other) is bool or input._kind.dtype.category == BOOL:
        _no_bools(input, other)
    return rsub(input, other) if isinstance(other, Tensor) else _rsub(input, other)


def _isub(input: Any, other: Any) -> Tensor:
    _no_bools(input, other)
    return sub_(input, other)


def _reversed_division(input: Any, other: Any) -> Tensor:
    return mul(reciprocal(input), other)


_Operator = Callable[..., Tensor]
_power: _Operator = Ruled(RULED["pow"], pow)
_FORWARDS: dict[str, _Operator] = {
    "add": _add,
    "sub": _checked_sub,
    "mul": mul,
    "truediv": _true_divide,
    "floordiv": floor_divide,
    "mod": remainder,
    "pow": _power,
    "and": bitwise_and,
    "or": bitwise_or,
    "xor": bitwise_xor,
    "lshift": bitwise_left_shift,
    "rshift": bitwise_right_shift,
    "eq": eq,
    "ne": ne,
    "lt": lt,
    "le": le,
    "gt": gt,
    "ge": ge,
}
_REFLECTED: dict[str, _Operator] = {
    "radd": _add,
    "rsub": _reversed_sub,
    "rmul": mul,
    "rdiv": _reversed_division,
    "rtruediv": _reversed_division,
    "rand": bitwise_and,
    "ror": bitwise_or,
    "rxor": bitwise_xor,
}
_BACKWARDS: dict[str, _Operator] = {
    "rfloordiv": floor_divide,
    "rmod": remainder,
    "rpow": _power,
    "rlshift": bitwise_left_shift,
    "rrshift": bitwise_right_shift,
}
for _name, _function in _FORWARDS.items():
    operator(_function, f"__{_name}__")
for _name, _function in _REFLECTED.items():
    operator(_function, f"__{_name}__", reflected=True)
for _name, _function in _BACKWARDS.items():
    operator(_function, f"__{_name}__", backwards=True)


def _inplace(function: Callable[..., Any], name: str) -> Operator:
    return lambda input, other: run_inplace(function, name, input, (other,), {})


for _name, _function in {
    "iadd": add_,
    "isub": _isub,
    "imul": METHODS["mul_"],
    "itruediv": _inplace(_true_divide, "div"),
    "ifloordiv": METHODS["floor_divide_"],
    "imod": _inplace(remainder, "remainder"),
    "ipow": _inplace(pow, "pow"),
    "iand": METHODS["bitwise_and_"],
    "ior": METHODS["bitwise_or_"],
    "ixor": METHODS["bitwise_xor_"],
    "ilshift": METHODS["bitwise_left_shift_"],
    "irshift": METHODS["bitwise_right_shift_"],
}.items():
    operator(_function, f"__{_name}__")


def _invert(input: Tensor) -> Any:
    if has_override((input,)):
        return run_override(_invert, (input,), (input,), {})
    if input._kind.differentiable:
        raise TypeError(
            f"~ (operator.invert) is only implemented on integer and Boolean-type tensors, not {input.dtype}"
        )
    return bitwise_not(input)


_invert.__name__ = "__invert__"
export_method(_invert, "__invert__")
