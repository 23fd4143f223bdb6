"""Comparisons of two operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.dtype import COMPLEX, FLOAT, LEGACY_NAMES, promote_types
from ..._core.tensor import Tensor
from ..._dispatch.abstract.meta import shape_in_elements
from ..._dispatch.arguments.precision import no_gradient
from ..._dispatch.axes import ELEMENTS
from ..._dispatch.call.elementwise import shape_error
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.elementwise import TO_BOOL, ElementwiseFunction, binary
from ..._dispatch.host_read import host_read
from ..._dispatch.public.registry import public

_FORGETS: dict[str, Any] = {"self": no_gradient, "other": no_gradient, "first_is_tensor": True}
eq = binary("eq", np.equal, rule=TO_BOOL, node="EqBackward1", doc="Elementwise `input == other`.", **_FORGETS)
ne = binary(
    "ne", np.not_equal, "not_equal", rule=TO_BOOL, node="NeBackward1", doc="Elementwise `input != other`.", **_FORGETS
)


def _order(name: str, body: Any, synonym: str, sign: str) -> ElementwiseFunction:
    """A comparison that complex numbers, which have no order, do not take part in."""
    node, doc = f"{name.capitalize()}Backward1", f"Elementwise `input {sign} other`."
    return binary(name, body, synonym, rule=TO_BOOL, node=node, refuses=(COMPLEX,), doc=doc, **_FORGETS)


lt = _order("lt", np.less, "less", "<")
le = _order("le", np.less_equal, "less_equal", "<=")
gt = _order("gt", np.greater, "greater", ">")
ge = _order("ge", np.greater_equal, "greater_equal", ">=")


def _record_changes(function: ElementwiseFunction) -> None:
    """Let a change in place, whose result is a number, be recorded: the gradient of what was there before is zero."""
    op = function.op

    def stored(input: Tensor, other: Any) -> Tensor:
        result = function(input, other).to(input.dtype)
        if input.requires_grad or (isinstance(other, Tensor) and other.requires_grad):
            op.record((input, other), result)
        return result

    op.stored = stored


for _each in (eq, ne, lt, le, gt, ge):
    _record_changes(_each)


@primitive(None, axes=ELEMENTS)
def _isclose(self: Array, other: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    close = self == other
    if self.dtype.kind in "biu":
        if rtol == 0 and atol == 0:
            return close
        a, b = self.astype(np.float64), other.astype(np.float64)
    elif self.dtype.itemsize == 2:
        a, b = self.astype(np.float32), other.astype(np.float32)
    else:
        a, b = self, other
    if equal_nan:
        close = close | (np.isnan(a) & np.isnan(b))
    if rtol == 0 and atol == 0:
        return close
    difference = np.abs(a - b)
    return close | (np.isfinite(difference) & (difference <= atol + np.abs(rtol * b)))


def _check_pair(name: str, input: Any, other: Any) -> None:
    for position, each in enumerate((input, other), 1):
        if not isinstance(each, Tensor):
            word = "input" if position == 1 else "other"
            raise TypeError(
                f"{name}(): argument '{word}' (position {position}) must be Tensor, not {type(each).__name__}"
            )


@public()
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether `|input - other| <= atol + rtol * |other|`."""
    _check_pair("isclose", input, other)
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{LEGACY_NAMES[input.dtype]} did not match {LEGACY_NAMES[other.dtype]}")
    if not (rtol >= 0 and atol >= 0):
        name, value = ("atol", atol) if rtol >= 0 else ("rtol", rtol)
        raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    if equal_nan and input._kind.dtype.category < FLOAT:
        equal_nan = False
    try:
        return _isclose(input, other, rtol, atol, equal_nan)
    except ValueError:
        raise shape_error("isclose", input, other) from None


@public()
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all pairs of elements are close."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@public()
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements."""
    _check_pair("equal", input, other)
    if input.is_meta and other.is_meta:
        shape_in_elements("equal")()
    if input.device != other.device:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{input.device} and {other.device}!"
        )
    if input._array.shape != other._array.shape:
        return False
    if input._kind.dtype is not other._kind.dtype:
        common = promote_types(input._kind.dtype, other._kind.dtype)
        input, other = input.to(common), other.to(common)
    same: bool = _equal(input, other)
    return same


@host_read("equal")
def _equal(self: Array, other: Array) -> bool:
    return bool((self == other).all())
