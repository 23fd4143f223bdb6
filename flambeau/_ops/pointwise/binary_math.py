"""Mathematical functions of two operands: angles, logarithms of sums, floating-point surgery."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.backend import as_array
from ..._core.dtype import BOOL, COMPLEX, FLOAT, INTEGER, LEGACY_NAMES
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import WIDEST, on
from ..._dispatch.arguments.precision import as_floating, no_gradient, only_where
from ..._dispatch.arguments.promotion import Operand
from ..._dispatch.compiled_body import compiled_at_any_size
from ..._dispatch.dispatch import Array
from ..._dispatch.elementwise import FLOATING, binary
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from .binary import _unrecorded, conj

_PRIVATE: dict[str, Any] = {"method": False, "public": False, "inplace": False}
_FLOATS_ONLY = (BOOL, INTEGER, COMPLEX)


def _atan2_gradient(grad: Tensor, along: Any, self: Tensor, other: Tensor) -> Tensor:
    square = self * self + other * other
    return only_where(grad * (along / square), square != 0)


atan2 = binary(
    "atan2",
    np.arctan2,
    "arctan2",
    rule=FLOATING,
    refuses=(COMPLEX,),
    tensors_only=True,
    doc="The angle of the point (other, input).",
    self=lambda grad, self, other: _atan2_gradient(grad, other, self, other),
    other=lambda grad, self, other: _atan2_gradient(grad, -self, self, other),
    autocast=on(cuda=WIDEST),
    first_is_tensor=True,
)
hypot = binary(
    "hypot",
    np.hypot,
    tensors_only=True,
    refuses=_FLOATS_ONLY,
    doc="The length of the vector (input, other).",
    self=lambda grad, self, result: grad * (self / result),
    other=lambda grad, other, result: grad * (other / result),
    first_is_tensor=True,
)


def _logaddexp(a: Array, b: Array) -> Array:
    if as_array(a).dtype.kind != "c":
        return np.logaddexp(a, b)
    b = b if hasattr(b, "dtype") else a.dtype.type(b)
    high: Any = np.where(a.real >= b.real, a, b)
    low: Any = np.where(a.real >= b.real, b, a)
    same_infinity = np.isinf(high.real) & (high.real == low.real)
    added = np.where(high.real == -np.inf, a, np.log(np.exp(a) + np.exp(b)))
    return np.where(same_infinity, added, high + np.log1p(np.exp(low - high)))


logaddexp = binary(
    "logaddexp",
    _logaddexp,
    tensors_only=True,
    refuses=(BOOL, INTEGER),
    inplace=False,
    doc="log(exp(input) + exp(other)).",
    self=lambda grad, self, other: grad / conj(1 + (other - self).exp()),
    other=lambda grad, self, other: grad / conj(1 + (self - other).exp()),
    first_is_tensor=True,
)
logaddexp2 = binary(
    "logaddexp2",
    np.logaddexp2,
    tensors_only=True,
    refuses=_FLOATS_ONLY,
    inplace=False,
    doc="log2(2 ** input + 2 ** other).",
    self=lambda grad, self, other: grad / (1 + (other - self).exp2()),
    other=lambda grad, self, other: grad / (1 + (self - other).exp2()),
    first_is_tensor=True,
)


def _times_log(logarithm: Any) -> Any:
    def body(x: Array, y: Array) -> Array:
        product = x * logarithm(y if hasattr(y, "dtype") else x.dtype.type(y))  # of a number NumPy's would be float64
        return np.where((as_array(x) == 0) & ~np.isnan(y), product.dtype.type(0), product)

    return compiled_at_any_size(body)


def _times_log_nodes(name: str, node: str, logarithm: Any, shift: int) -> Callable[[Any, Any], Tensor]:
    """The three forms of x log(y + shift): of two tensors, of a number and a tensor, of a tensor and a number."""

    def self_gradient(grad: Any, self: Any, other: Any) -> Any:
        return grad * function(((self != 0) | (other > -shift)).to(grad.dtype), other)

    def other_gradient(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
        return grad * self / (other + shift if shift else other)

    body = _times_log(logarithm)
    rule: dict[str, Any] = {"rule": FLOATING, "refuses": (COMPLEX,), **_PRIVATE}
    both = binary(name, body, node=f"{node}0", **rule, self=self_gradient, other=other_gradient)
    of_number = binary(name, body, op_name=f"{name}_of_number", node=f"{node}1", **rule, other=other_gradient)
    with_number = binary(name, body, op_name=f"{name}_with_number", node=f"{node}2", **rule, self=self_gradient)

    def function(input: Any, other: Any) -> Tensor:
        if not isinstance(other, Tensor):
            return with_number(input, other)
        return (both if isinstance(input, Tensor) else of_number)(input, other)

    return function


_xlogy = _times_log_nodes("xlogy", "XlogyBackward", np.log, 0)
_xlog1py = _times_log_nodes("special_xlog1py", "SpecialXlog1PyBackward", np.log1p, 1)


@public("special.xlogy", inplace=True, out=write_out, also={"self": "input"})
def xlogy(input: Operand, other: Operand) -> Tensor:
    """`input * log(other)`, 0 where `input` is 0."""
    return _xlogy(input, other)


@public("special.xlog1py", function=False, method=False, out=write_out)
def xlog1py(input: Operand, other: Operand) -> Tensor:
    """`input * log1p(other)`, 0 where `input` is 0."""
    return _xlog1py(input, other)


def _copysign_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return only_where(grad * (result / self), self != 0)


_copysign = binary(
    "copysign",
    np.copysign,
    node="CopysignBackward0",
    rule=FLOATING,
    refuses=(COMPLEX,),
    **_PRIVATE,
    self=_copysign_gradient,
    other=no_gradient,
    first_is_tensor=True,
)
_copysign_of_number = binary(
    "copysign",
    np.copysign,
    op_name="copysign_of_number",
    node="CopysignBackward1",
    rule=FLOATING,
    refuses=(COMPLEX,),
    **_PRIVATE,
    self=_copysign_gradient,
    first_is_tensor=True,
)


@public(inplace=True, out=write_out)
def copysign(input: Tensor, other: Operand) -> Tensor:
    """The size of `input` with the sign of `other`."""
    return (_copysign if isinstance(other, Tensor) else _copysign_of_number)(input, other)


nextafter = binary(
    "nextafter",
    np.nextafter,
    tensors_only=True,
    refuses=_FLOATS_ONLY,
    doc="The next floating-point number from `input` towards `other`.",
    self=lambda grad, self, other: only_where(grad, self != other),
    other=no_gradient,
    keeps_halves=True,
)


def _ldexp(a: Array, b: Array) -> Array:
    return a * (np.exp2(b) if b.dtype.kind == "f" else np.exp(b * math.log(2)))


_ldexp_floating = binary(
    "ldexp",
    _ldexp,
    rule=FLOATING,
    node="LdexpBackward0",
    **_PRIVATE,
    self=lambda grad, other: grad * conj(other.exp2()),
    other=lambda grad, self, other: grad * conj(self * other.exp2() * math.log(2)),
)


@public(inplace=True, out=write_out)
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """`input * 2 ** other`."""
    return _ldexp_floating(as_floating(input), other)


_heaviside = binary(
    "heaviside",
    lambda x, values: np.where(x == 0, values, (x > 0).astype(x.dtype)),
    refuses=(COMPLEX,),
    **_PRIVATE,
    **_unrecorded("heaviside"),
)


@public(inplace=True, out=True)
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below zero, 1 above it, and `values` at zero."""
    if not isinstance(values, Tensor):
        raise TypeError(f"heaviside(): argument 'values' (position 2) must be Tensor, not {type(values).__name__}")
    if COMPLEX in (input._kind.dtype.category, values._kind.dtype.category):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype is not values.dtype:
        raise RuntimeError(
            f"heaviside is not yet implemented for tensors with different dtypes: {LEGACY_NAMES[input.dtype]} and "
            f"{LEGACY_NAMES[values.dtype]}"
        )
    return _heaviside(input, values)


gcd = binary("gcd", np.gcd, refuses=(BOOL, FLOAT, COMPLEX), tensors_only=True, doc="Greatest common divisor.")
lcm = binary("lcm", np.lcm, refuses=(BOOL, FLOAT, COMPLEX), tensors_only=True, doc="Least common multiple.")
