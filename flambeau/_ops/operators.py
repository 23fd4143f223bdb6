"""Python's operators on tensors.

Operands of foreign types give NotImplemented, so that Python asks the other operand, and says what it always says if
that does not know either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.dtype import BOOL
from .._core.tensor import PLAIN_TYPES, Tensor
from .binary import _add, _no_bools, _rsub, _sub, _true_divide, floor_divide, mul, pow, remainder
from .bitwise import bitwise_and, bitwise_left_shift, bitwise_or, bitwise_right_shift, bitwise_xor
from .compare import eq, ge, gt, le, lt, ne
from .overrides import has_override
from .promotion import is_number
from .registry import METHODS, export_method
from .unary import bitwise_not, reciprocal

Operator = Callable[[Any, Any], Any]
_NUMBERS = frozenset((float, int, bool, complex))


def _operand(value: Any) -> bool:
    """Whether an operator takes `value` as its other side."""
    return isinstance(value, (Tensor, np.ndarray)) or is_number(value) or has_override((value,))


def _as_operand(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    from .create import from_numpy

    return from_numpy(value)


def operator(function: Callable[..., Any], name: str, backwards: bool = False) -> Operator:
    """The operator `name`, which runs `function`; `backwards`: with its operands exchanged."""

    def run(input: Any, other: Any) -> Any:
        kind = type(other)
        if not (kind in PLAIN_TYPES or kind in _NUMBERS):
            if not _operand(other):
                return NotImplemented
            other = _as_operand(other)
        return function(other, input) if backwards else function(input, other)

    run.__name__ = run.__qualname__ = name
    export_method(run, name)
    return run


def _checked_sub(input: Any, other: Any) -> Tensor:
    if type(other) is bool or input._kind.dtype.category == BOOL or (
        isinstance(other, Tensor) and other._kind.dtype.category == BOOL
    ):
        _no_bools(input, other)
    return _sub(input, other)


def _reversed_sub(input: Any, other: Any) -> Tensor:
    if type(other) is bool or input._kind.dtype.category == BOOL:
        _no_bools(input, other)
    return _rsub(input, other)


def _reversed_division(input: Any, other: Any) -> Tensor:
    return mul(reciprocal(input), other)


for _name, _function in {
    "add": _add, "radd": _add, "sub": _checked_sub, "rsub": _reversed_sub, "mul": mul, "rmul": mul, "truediv": _true_divide,
    "rtruediv": _reversed_division, "floordiv": floor_divide, "mod": remainder, "pow": pow, "and": bitwise_and,
    "rand": bitwise_and, "or": bitwise_or, "ror": bitwise_or, "xor": bitwise_xor, "rxor": bitwise_xor,
    "lshift": bitwise_left_shift, "rshift": bitwise_right_shift,
    "eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge,
}.items():  # fmt: skip
    operator(_function, f"__{_name}__")
for _name, _function in {
    "rfloordiv": floor_divide, "rmod": remainder, "rpow": pow, "rlshift": bitwise_left_shift,
    "rrshift": bitwise_right_shift,
}.items():  # fmt: skip
    operator(_function, f"__{_name}__", backwards=True)
for _name, _method in {
    "iadd": "add_", "isub": "sub_", "imul": "mul_", "itruediv": "div_", "ifloordiv": "floor_divide_", "imod": "remainder_",
    "ipow": "pow_", "iand": "bitwise_and_", "ior": "bitwise_or_", "ixor": "bitwise_xor_", "ilshift": "bitwise_left_shift_",
    "irshift": "bitwise_right_shift_",
}.items():  # fmt: skip
    operator(METHODS[_method], f"__{_name}__")


def _invert(input: Tensor) -> Tensor:
    if input._kind.differentiable:
        raise TypeError(f"~ (operator.invert) is only implemented on integer and Boolean-type tensors, not {input.dtype}")
    return bitwise_not(input)


export_method(_invert, "__invert__")
