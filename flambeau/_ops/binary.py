"""Arithmetic and comparison of two operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.dtype import BOOL, COMPLEX
from .._core.tensor import Tensor
from .elementwise import FLOATING, TO_BOOL, binary, change
from .promotion import Operand
from .registry import export_method, public


def conj(value: Any) -> Any:
    """The complex conjugate of a tensor or number; real ones as they are."""
    if isinstance(value, Tensor):
        return value.conj() if value._kind.dtype.is_complex else value  # type: ignore[attr-defined]
    return value.conjugate()


_add = binary(
    "add", np.add, method=False, public=False, inplace=False,
    self=lambda grad: grad,
    other=lambda grad: grad,
)  # fmt: skip

_sub = binary(
    "sub", np.subtract, method=False, public=False, inplace=False, refuses=(BOOL,),
    self=lambda grad: grad,
    other=lambda grad: -grad,
)  # fmt: skip

mul = binary(
    "mul", np.multiply, "multiply",
    doc="Product of two operands.",
    self=lambda grad, other: grad * conj(other),
    other=lambda grad, self: grad * conj(self),
)  # fmt: skip

_true_divide = binary(
    "div", np.true_divide, rule=FLOATING, method=False, public=False, inplace=False,
    self=lambda grad, other: grad / conj(other),
    other=lambda grad, self, other: -grad * conj((self / other) / other),
)  # fmt: skip


@public(out=True)
def add(input: Operand, other: Operand, *, alpha: Any = 1) -> Tensor:
    """`input + alpha * other`.

    >>> flambeau.add(flambeau.tensor([1.0, 2.0]), 10, alpha=2)
    tensor([21., 22.])
    """
    return _add(input, other if alpha == 1 else other * alpha)


@public("subtract", out=True)
def sub(input: Operand, other: Operand, *, alpha: Any = 1) -> Tensor:
    """`input - alpha * other`."""
    return _sub(input, other if alpha == 1 else other * alpha)


@public()
def add_(input: Tensor, other: Operand, *, alpha: Any = 1) -> Tensor:
    """In-place form of `add`."""
    return change(_add.op, _add, input, other if alpha == 1 else other * alpha)  # type: ignore[attr-defined]


@public("subtract_")
def sub_(input: Tensor, other: Operand, *, alpha: Any = 1) -> Tensor:
    """In-place form of `sub`."""
    return change(_sub.op, _sub, input, other if alpha == 1 else other * alpha)  # type: ignore[attr-defined]


@public(method=False)
def rsub(input: Operand, other: Operand, *, alpha: Any = 1) -> Tensor:
    """`other - alpha * input`."""
    return _sub(other, input if alpha == 1 else input * alpha)


@public("divide", inplace=True, out=True)
def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """Quotient; `rounding_mode` "trunc" or "floor" rounds it."""
    if rounding_mode is None:
        return _true_divide(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)  # noqa: F821  (further ops of this family)
    if rounding_mode == "trunc":
        return _true_divide(input, other).trunc()  # type: ignore[attr-defined]
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


eq = binary("eq", np.equal, rule=TO_BOOL, doc="Elementwise `input == other`.")
ne = binary("ne", np.not_equal, "not_equal", rule=TO_BOOL, doc="Elementwise `input != other`.")
lt = binary("lt", np.less, "less", rule=TO_BOOL, refuses=(COMPLEX,), doc="Elementwise `input < other`.")
le = binary("le", np.less_equal, "less_equal", rule=TO_BOOL, refuses=(COMPLEX,), doc="Elementwise `input <= other`.")
gt = binary("gt", np.greater, "greater", rule=TO_BOOL, refuses=(COMPLEX,), doc="Elementwise `input > other`.")
ge = binary("ge", np.greater_equal, "greater_equal", rule=TO_BOOL, refuses=(COMPLEX,), doc="Elementwise `input >= other`.")


def _reversed_subtraction(input: Tensor, other: Any) -> Tensor:
    return _sub(other, input)


def _reversed_division(input: Tensor, other: Any) -> Tensor:
    return input.reciprocal() * other  # type: ignore[attr-defined,no-any-return]


export_method(_add, "__add__", "__radd__")
export_method(add_, "__iadd__")
export_method(sub_, "__isub__")
export_method(_sub, "__sub__")
export_method(_reversed_subtraction, "__rsub__")
export_method(mul, "__mul__", "__rmul__")
export_method(_true_divide, "__truediv__")
export_method(_reversed_division, "__rtruediv__")
for _name, _op in {"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge}.items():
    export_method(_op, f"__{_name}__")
