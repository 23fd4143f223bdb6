"""Arithmetic of two operands: sums, products, quotients, powers, extremes."""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np

from ..._core.backend import as_array, read, undispatched
from ..._core.dtype import (
    BOOL,
    COMPLEX,
    FLOAT,
    INTEGER,
    LEGACY_NAMES,
    bfloat16,
    bool_,
    complex128,
    dtype,
    float16,
    float64,
)
from ..._core.geometry.layout import arranged
from ..._core.modes import THREAD
from ..._core.tensor import DIRECT_TYPES, Tensor
from ..._dispatch.arguments.autocast_rules import FULL, on
from ..._dispatch.arguments.precision import in_single, no_gradient, only_where
from ..._dispatch.arguments.promotion import Number, Operand, is_number, result_type_of, scalar_category
from ..._dispatch.arguments.scalar import scaling
from ..._dispatch.axes import ELEMENTS
from ..._dispatch.backend_op import BackendOp
from ..._dispatch.call.elementwise import shape_error
from ..._dispatch.changes.direct_updates import add_scaled, can_write, write
from ..._dispatch.changes.inplace import run_inplace
from ..._dispatch.compiled_body import compiled_at_any_size, pointwise
from ..._dispatch.dispatch import Array, Primitive, primitive
from ..._dispatch.elementwise import FLOATING, binary
from ..._dispatch.gradients.undifferentiable import no_derivative
from ..._dispatch.public.overrides import has_override, run_override
from ..._dispatch.public.protocol import reordered, write_out
from ..._dispatch.public.registry import export, export_method, public


@overload
def conj(value: Tensor) -> Tensor: ...
@overload
def conj(value: complex) -> complex: ...
def conj(value: Tensor | complex) -> Tensor | complex:
    """The complex conjugate of a tensor or number; real ones as they are."""
    if isinstance(value, Tensor):
        return value.conj() if value._kind.dtype.is_complex else value
    return value.conjugate()


# ----- sums and differences ----------------------------------------------------------------------------------------

_add = binary(
    "add",
    np.add,
    method=False,
    public=False,
    inplace=False,
    self=lambda grad: grad,
    other=lambda grad: grad,
    numbers_alone=True,
)

_sub = binary(
    "sub",
    np.subtract,
    method=False,
    public=False,
    inplace=False,
    refuses=(BOOL,),
    self=lambda grad: grad,
    other=lambda grad: -grad,
    complaints={
        BOOL: (
            RuntimeError,
            "Subtraction, the `-` operator, with two bool tensors is not supported. "  # noqa: ISC004
            "Use the `^` or `logical_xor()` operator instead.",
        )
    },
    numbers_alone=True,
)
_ONE_BOOL = (
    "Subtraction, the `-` operator, with a bool tensor is not supported. "
    "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
)

_rsub = binary(
    "rsub",
    lambda a, b: np.subtract(b, a),
    node="RsubBackward1",
    method=False,
    public=False,
    inplace=False,
    refuses=(BOOL,),
    self=lambda grad: -grad,
    complaints={BOOL: (RuntimeError, _ONE_BOOL)},
)


def _fitted(number: Any, array: Array) -> Any:
    """`number` in the array's dtype; integers wrap around."""
    if type(number) is float and array.dtype.char in "fd":
        return number  # NumPy itself fits Python's numbers to the array
    return as_array(number).astype(array.dtype)


# Half precision stays half precision in these three: PyTorch too rounds the product before it adds.


@primitive("AddBackward0", axes=ELEMENTS, self=lambda grad: grad, other=lambda grad, alpha: grad * conj(alpha))
def _add_scaled(self: Array, other: Array, alpha: Any) -> Array:
    return arranged(self + other * _fitted(alpha, other), self, other)


@primitive("SubBackward0", axes=ELEMENTS, self=lambda grad: grad, other=lambda grad, alpha: -grad * conj(alpha))
def _sub_scaled(self: Array, other: Array, alpha: Any) -> Array:
    return arranged(self - other * _fitted(alpha, other), self, other)


@primitive("RsubBackward0", axes=ELEMENTS, self=lambda grad, alpha: -grad * conj(alpha), other=lambda grad: grad)
def _rsub_scaled(self: Array, other: Array, alpha: Any) -> Array:
    return arranged(other - self * _fitted(alpha, self), other, self)


def _no_bools(input: Operand, other: Operand) -> None:
    """Refuse a subtraction in which one operand is bool; that of two bools has an error of its own."""
    if type(input) is type(other) is Tensor and input._kind.differentiable and other._kind.differentiable:
        return  # the usual case
    found = [
        scalar_category(each) if is_number(each) else each._kind.dtype.category
        for each in (input, other)
        if is_number(each) or isinstance(each, Tensor)
    ]
    if BOOL in found and found != [BOOL, BOOL]:
        raise RuntimeError(_ONE_BOOL)


def _scaled(kernel: Primitive[..., Tensor], input: Operand, other: Operand, alpha: Any) -> Tensor:
    """Run a kernel with `alpha` on operands brought to their common dtype."""
    if (
        type(alpha) is float
        and isinstance(input, Tensor)
        and isinstance(other, Tensor)
        and input._kind is other._kind
        and input._kind.differentiable
        and input._array.shape == other._array.shape
    ):
        return kernel(input, other, alpha)
    if isinstance(alpha, Tensor) and alpha._array.ndim == 0:
        alpha = alpha.item()
    common = result_type_of(input, other)
    if kernel is not _add_scaled:
        _sub.op.compute_dtype(common)  # which refuses the difference of two bools
    if isinstance(alpha, bool) and common.category != BOOL:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if scalar_category(alpha) > max(common.category, INTEGER):
        what = "integral" if common.category <= INTEGER else "floating point"
        raise RuntimeError(
            f"For {what} input tensors, argument alpha must not be a "
            f"{'floating point' if scalar_category(alpha) == FLOAT else 'complex'} number."
        )
    left, right = _as_tensors(input, other, common)
    try:
        return kernel(left, right, scaling(alpha, common))
    except ValueError:
        raise shape_error(kernel.name.strip("_"), left, right) from None


def _as_tensors(input: Operand, other: Operand, common: Any) -> tuple[Tensor, Tensor]:
    from ..create.constants import tensor

    place = next((each._kind.device for each in (input, other) if isinstance(each, Tensor)), None)
    left, right = (
        each.to(common) if isinstance(each, Tensor) else tensor(each, dtype=common, device=place)
        for each in (input, other)
    )
    return left, right


_OLDER = ("input alpha other",)


@public(out=write_out, older=_OLDER)
def add(input: Operand, other: Operand, *, alpha: Number = 1) -> Tensor:
    """`input + alpha * other`."""
    return _add(input, other) if type(alpha) is int and alpha == 1 else _scaled(_add_scaled, input, other, alpha)


@public("subtract", out=write_out, older=_OLDER)
def sub(input: Operand, other: Operand, *, alpha: Number = 1) -> Tensor:
    """`input - alpha * other`."""
    _no_bools(input, other)
    return _sub(input, other) if type(alpha) is int and alpha == 1 else _scaled(_sub_scaled, input, other, alpha)


def add_(input: Tensor, other: Operand, *further: Any, alpha: Number = 1) -> Tensor:
    """In-place form of `add`."""
    if further:
        return reordered(add_, _OLDER, (input, other, *further), {"alpha": alpha})
    if type(input) not in DIRECT_TYPES and has_override((input, other)):
        return run_override(add_, (input, other), (input, other), {"alpha": alpha})
    if type(alpha) is int and alpha == 1:
        return _add.op.change(input, other)
    if type(alpha) is float and can_write(input, other):
        return write(add_scaled(alpha), input, other)
    if isinstance(other, Tensor) and other._kind.indirect and has_override((other,)):  # a sparse one
        return run_override(add_, (input, other), (input, other), {"alpha": alpha})
    return run_inplace(add, "add", input, (other,), {"alpha": alpha})


export(add_, "add_")
export_method(add_, "add_")


@public("subtract_", older=_OLDER)
def sub_(input: Tensor, other: Operand, *, alpha: Number = 1) -> Tensor:
    """In-place form of `sub`."""
    if type(other) is bool or input._kind.dtype is bool_ or (isinstance(other, Tensor) and other._kind.dtype is bool_):
        _no_bools(input, other)
    if type(alpha) is int and alpha == 1:
        return _sub.op.change(input, other)
    if type(alpha) is float and can_write(input, other):
        return write(add_scaled(-alpha), input, other)
    return run_inplace(sub, "sub", input, (other,), {"alpha": alpha})


@public(method=False)
def rsub(input: Operand, other: Operand, alpha: Number = 1) -> Tensor:
    """`other - alpha * input`."""
    if not isinstance(input, Tensor):
        raise TypeError(f"rsub(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    _no_bools(input, other)
    if alpha == 1 and not isinstance(other, Tensor):
        return _rsub(input, other)
    return _scaled(_rsub_scaled, input, other, alpha)


# ----- products and quotients --------------------------------------------------------------------------------------

mul = binary(
    "mul",
    np.multiply,
    "multiply",
    doc="Product of two operands.",
    self=lambda grad, other: grad * conj(other),
    other=lambda grad, self: grad * conj(self),
    exact_numbers=True,
    numbers_alone=True,
)

_true_divide = binary(
    "div",
    np.true_divide,
    rule=FLOATING,
    method=False,
    public=False,
    inplace=False,
    self=lambda grad, other: grad / conj(other),
    other=lambda grad, self, other: -grad * conj((self / other) / other),
    exact_numbers=True,
    numbers_alone=True,
)

# What PyTorch records where one of its own functions multiplies or divides by a number.
mul_number = binary(
    "mul",
    np.multiply,
    op_name="mul_number",
    node="MulBackward1",
    method=False,
    public=False,
    inplace=False,
    self=lambda grad, other: grad * conj(other),
    exact_numbers=True,
)
div_number = binary(
    "div",
    np.true_divide,
    op_name="div_number",
    node="DivBackward1",
    rule=FLOATING,
    method=False,
    public=False,
    inplace=False,
    self=lambda grad, other: grad / conj(other),
    exact_numbers=True,
)


_count_nonzero = undispatched(np.count_nonzero)


def _check_divisor(divisor: Array) -> None:
    if type(divisor) is np.ndarray:
        is_usable = read(_count_nonzero(divisor)) == divisor.size
    else:
        is_usable = read(np.logical_and.reduce(divisor, None))
    if not is_usable:
        raise RuntimeError("ZeroDivisionError: integer division or modulo by zero")


def _divided_down(a: Array, b: Array) -> Array:
    if (a if type(a) is np.ndarray else as_array(a)).dtype.kind in "iu":
        _check_divisor(b)
    return np.floor_divide(a, b)


def _divided_to_zero(a: Array, b: Array) -> Array:
    if as_array(a).dtype.kind not in "iu":
        return np.trunc(np.true_divide(a, b))
    _check_divisor(b)
    quotient = np.floor_divide(a, b)
    return quotient + ((quotient < 0) & (quotient * b != a)).astype(quotient.dtype)


def _unrecorded(name: str) -> dict[str, Any]:
    """The node of an op whose derivative PyTorch leaves undefined: an error, once somebody asks for it."""
    return {"node": "NotImplemented", "self": no_derivative(name), "other": no_derivative(name)}


_ROUNDED: dict[str, Any] = {"node": "DivBackward2", "self": no_gradient, "other": no_gradient}
floor_divide = binary(
    "floor_divide",
    _divided_down,
    refuses=(BOOL, COMPLEX),
    doc="Quotient rounded down.",
    **_unrecorded("floor_divide"),
    exact_numbers=True,
    numbers_alone=True,
)
_div_floor = binary(
    "div_floor",
    _divided_down,
    refuses=(BOOL, COMPLEX),
    method=False,
    public=False,
    inplace=False,
    **_ROUNDED,
    exact_numbers=True,
    numbers_alone=True,
)
_div_trunc = binary(
    "div_trunc",
    _divided_to_zero,
    refuses=(BOOL, COMPLEX),
    method=False,
    public=False,
    inplace=False,
    **_ROUNDED,
    exact_numbers=True,
    numbers_alone=True,
)


@primitive("DivBackward2", axes=ELEMENTS, self=no_gradient, other=no_gradient)
def _div_trunc_half(self: Array, other: Array) -> Array:
    # PyTorch rounds the quotient of half-precision numbers before it truncates it, unless all have one divisor.
    return np.trunc((self.astype(np.float32) / other.astype(np.float32)).astype(self.dtype)).astype(self.dtype)


def _quotient(input: Operand, other: Operand, rounding_mode: str | None) -> Tensor:
    if rounding_mode is None:
        return _true_divide(input, other)
    if rounding_mode == "floor":
        return _div_floor(input, other)
    if rounding_mode == "trunc":
        common = result_type_of(input, other)
        if common in (float16, bfloat16) and isinstance(other, Tensor) and other._array.size != 1:
            return _div_trunc_half(*_as_tensors(input, other, common))
        return _div_trunc(input, other)
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


@public("divide", out=write_out)
def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """Quotient; `rounding_mode` "trunc" or "floor" rounds it."""
    return _quotient(input, other, rounding_mode)


@public("divide_")
def div_(input: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """In-place form of `div`."""
    if rounding_mode is None:
        return _true_divide.op.change(input, other)
    return run_inplace(div, "div", input, (other,), {"rounding_mode": rounding_mode})


@public(inplace=True, out=write_out)
def true_divide(input: Operand, other: Operand) -> Tensor:
    """Quotient, never rounded."""
    return _true_divide(input, other)


def _modulo(a: Array, b: Array) -> Array:
    if (a if type(a) is np.ndarray else as_array(a)).dtype.kind in "iu":
        _check_divisor(b)
        return np.remainder(a, b)
    return _float_modulo(a, b)


@compiled_at_any_size
def _float_modulo(a: Array, b: Array) -> Array:
    rest = np.fmod(a, b)  # NumPy's remainder gives zeros the sign of the divisor, PyTorch's that of the dividend
    return np.where((rest != 0) & ((rest < 0) != (as_array(b) < 0)), rest + b, rest)


def _fmod(a: Array, b: Array) -> Array:
    if as_array(a).dtype.kind in "iu":
        _check_divisor(b)
    return np.fmod(a, b)


_PRIVATE: dict[str, Any] = {"refuses": (BOOL, COMPLEX), "method": False, "public": False, "inplace": False}
_remainder_by_number = binary(
    "remainder",
    _modulo,
    op_name="remainder_by_number",
    node="RemainderBackward0",
    **_PRIVATE,
    self=lambda grad: grad * 1,
)
_remainder_of_number = binary(
    "remainder", _modulo, op_name="remainder_of_number", **_PRIVATE, **_unrecorded("remainder")
)
_remainder = binary(
    "remainder",
    _modulo,
    node="RemainderBackward1",
    **_PRIVATE,
    self=lambda grad: grad * 1,
    other=lambda grad, self, other: -grad * self.div(other, rounding_mode="floor"),
)
_fmod_by_number = binary(
    "fmod",
    _fmod,
    op_name="fmod_by_number",
    node="FmodBackward0",
    **_PRIVATE,
    self=lambda grad: grad * 1,
    first_is_tensor=True,
)
_fmod_by_tensor = binary(
    "fmod",
    _fmod,
    node="FmodBackward1",
    **_PRIVATE,
    self=lambda grad: grad * 1,
    other=lambda grad, self, other: -grad * self.div(other, rounding_mode="trunc"),
    first_is_tensor=True,
)


@public(inplace=True, out=write_out, also={"self": "input"})
def remainder(input: Operand, other: Operand) -> Tensor:
    """What is left of the division rounded down: it has the sign of `other`."""
    if not isinstance(other, Tensor):
        return _remainder_by_number(input, other)
    return _remainder(input, other) if isinstance(input, Tensor) else _remainder_of_number(input, other)


@public(inplace=True, out=write_out)
def fmod(input: Tensor, other: Operand) -> Tensor:
    """What is left of the division rounded towards zero: it has the sign of `input`."""
    return (_fmod_by_tensor if isinstance(other, Tensor) else _fmod_by_number)(input, other)


# ----- powers ------------------------------------------------------------------------------------------------------


def _power(base: Array, exponent: Array) -> Array:
    base, exponent = as_array(base), as_array(exponent)
    if base.dtype.kind == "c":
        # By way of the logarithm: 0 times an infinity.
        undefined = (exponent == 0) & ~(np.isfinite(base) & (base != 0))
        return np.where(undefined, base.dtype.type(complex(np.nan, np.nan)), np.power(base, exponent))
    if base.dtype.kind != "i":
        return np.power(base, exponent)
    # Negative powers of integers are 0, except those of 1 and -1.
    negative = exponent < 0
    result = np.power(
        base, np.where(negative, -(exponent % 2), exponent) * np.where(negative, -1, 1).astype(base.dtype)
    )
    return np.where(negative & (np.abs(base) != 1), base.dtype.type(0), result)


def _power_of_number(base: Any, exponent: Array) -> Array:
    """Powers of 1 are 1, whatever the exponent."""
    return np.ones_like(exponent) if base == 1 else _power(base, exponent)


_power_gradient = BackendOp("power_gradient")


def _pow_self_gradient(grad: Tensor, self: Tensor, exponent: Any) -> Tensor:
    if exponent == 0:
        return no_gradient(grad)
    done: Tensor | None = None if grad._kind.is_cpu else _power_gradient(grad, self, exponent)
    if done is not None:
        return done
    is_square = exponent == 2 and not THREAD.modes.grad and not self.is_complex()  # recorded, it is PyTorch's nodes
    slope: Tensor = exponent * (self if is_square else self.pow(exponent - 1))
    return grad * conj(slope)


def _pow_self_gradients(grad: Tensor, self: Tensor, exponent: Any) -> Tensor:
    return only_where(grad * conj(exponent * self.pow(exponent - 1)), exponent != 0)


def _pow_exponent_gradient(grad: Tensor, self: Tensor | complex, exponent: Tensor, result: Tensor) -> Tensor:
    if isinstance(self, Tensor):
        logarithm = self.log()
        vanishes = (self == 0) & (exponent >= 0 if not exponent.dtype.is_complex else exponent.real >= 0)
    else:
        logarithm = _log_of_number(self, result.dtype.is_complex)
        if self != 0:
            slope: Tensor = result * logarithm
            return grad * conj(slope)
        vanishes = exponent >= 0 if not exponent.dtype.is_complex else exponent.real >= 0
    return only_where(grad * conj(result * logarithm), ~vanishes)


def _log_of_number(base: Any, is_complex: bool) -> Any:
    if is_complex:
        return np.log(complex(base)).item()
    return math.log(base) if base > 0 else (-math.inf if base == 0 else math.nan)


@primitive("PowBackward0", axes=ELEMENTS, self=_pow_self_gradient, fuses=False)
def _pow_number(self: Array, exponent: Any) -> Array:
    is_half = self.dtype.itemsize == 2 and self.dtype.kind not in "iu"
    if is_half and self.dtype == np.float16 and abs(exponent) == 0.5:
        return in_single(_half_power)(self, exponent)
    if exponent in _EXACT_POWERS and (is_half or self.dtype.char in "fd"):
        return _exactly_raised(self, exponent)
    if is_half:  # which the exponent takes on
        return in_single(_raised)(self, float(self.dtype.type(exponent)))
    return _raised(self, exponent)


def _half_power(self: Any, exponent: float) -> Any:
    """Powers of 0.5 or -0.5 as C's `pow` has them, and PyTorch for float16 alone: no root of a negative number is NaN
    where that is infinite, and the root of -0.0 is 0.0.
    """
    root = np.sqrt(np.where(np.isneginf(self), np.float32(np.inf), self)) + np.float32(0)
    return root if exponent > 0 else 1 / root


def _raised(self: Any, exponent: Any) -> Any:
    if self.dtype.kind in "fc":
        if exponent == 2:
            return np.square(self)
        if exponent == 1:
            return np.positive(self)
        if exponent == 0.5:
            return np.sqrt(self)
        if exponent == -0.5:
            return 1 / np.sqrt(self)
        if exponent == 3:
            return np.square(self) * self
        if exponent == -1:
            return np.true_divide(1, self, dtype=self.dtype)
        if exponent == 0:
            return np.ones_like(self)
    elif self.dtype == bool:
        return self | (not exponent)
    return np.power(self, self.dtype.type(exponent))


_EXACT_POWERS = frozenset((2, 3, 0.5, -0.5))
"""Exponents whose powers are products, roots and quotients: a generated kernel has the bits of NumPy's functions."""
_exactly_raised = pointwise(in_single(_raised))

_pow_tensor = binary(
    "pow",
    _power,
    node="PowBackward1",
    operands=("self", "exponent"),
    refuses=(BOOL,),
    method=False,
    public=False,
    inplace=False,
    self=_pow_self_gradients,
    exponent=_pow_exponent_gradient,
)
_pow_of_number = binary(
    "pow",
    _power_of_number,
    op_name="pow_of_number",
    node="PowBackward2",
    operands=("self", "exponent"),
    refuses=(BOOL,),
    method=False,
    public=False,
    inplace=False,
    exponent=_pow_exponent_gradient,
)


@public(inplace=True, out=write_out, also={"self": "input"}, autocast=on(cuda=FULL))
def pow(input: Operand, exponent: Operand) -> Tensor:
    """`input ** exponent`."""
    if not isinstance(exponent, Tensor) and not isinstance(input, Tensor):
        raise TypeError(
            f"pow() received an invalid combination of arguments: ({type(input).__name__}, {type(exponent).__name__}), "
            "but one of them must be a Tensor"
        )
    if isinstance(exponent, Tensor):
        return (_pow_tensor if isinstance(input, Tensor) else _pow_of_number)(input, exponent)
    if type(exponent) in (int, float) and isinstance(input, Tensor) and input._kind.differentiable:
        return _pow_number(input, exponent)
    if not is_number(exponent):
        raise TypeError(
            f"pow(): argument 'exponent' (position 2) must be Tensor or Number, not {type(exponent).__name__}"
        )
    common = result_type_of(input, exponent)
    if common.category <= INTEGER and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return _pow_number(input if common is input._kind.dtype else input.to(common), exponent)


@public("special.square", inplace=True, out=write_out, autocast=on(cuda=FULL))
def square(input: Tensor) -> Tensor:
    """`input * input`."""
    return pow(input, 2)


@public(out=True, also={"self": "input"})
def float_power(input: Operand, exponent: Operand) -> Tensor:
    """`input ** exponent` in double precision."""
    wide = _double(input, exponent)
    base = input.to(wide) if isinstance(input, Tensor) else input
    return pow(base, exponent.to(wide) if isinstance(exponent, Tensor) else exponent)


def _double(*operands: Any) -> dtype:
    return complex128 if result_type_of(*operands).is_complex else float64


@public()
def float_power_(input: Tensor, exponent: Operand) -> Tensor:
    """In-place form of `float_power`: the tensor must be of double precision already."""
    wide = _double(input, exponent)
    if input._kind.dtype is not wide:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {LEGACY_NAMES[input._kind.dtype]} but the operation's result "
            f"requires dtype {LEGACY_NAMES[wide]}"
        )
    return run_inplace(float_power, "float_power", input, (exponent,), {})


# ----- extremes ----------------------------------------------------------------------------------------------------


def _shared(grad: Tensor, chosen: Any, ties: Any) -> Tensor:
    """The gradient where an operand was chosen; half of it where both were equal."""
    return only_where(grad, chosen) + only_where(grad / 2, ties)


maximum = binary(
    "maximum",
    np.maximum,
    refuses=(COMPLEX,),
    inplace=False,
    tensors_only=True,
    doc="The larger of two elements; NaN if either is.",
    self=lambda grad, self, other: _shared(grad, ~(self <= other), self == other),
    other=lambda grad, self, other: _shared(grad, ~(self >= other), self == other),
    complaints={COMPLEX: (RuntimeError, "maximum not implemented for complex tensors.")},
)
minimum = binary(
    "minimum",
    np.minimum,
    refuses=(COMPLEX,),
    inplace=False,
    tensors_only=True,
    doc="The smaller of two elements; NaN if either is.",
    self=lambda grad, self, other: _shared(grad, ~(self >= other), self == other),
    other=lambda grad, self, other: _shared(grad, ~(self <= other), self == other),
    complaints={COMPLEX: (RuntimeError, "minimum not implemented for complex tensors.")},
)
fmax = binary(
    "fmax",
    np.fmax,
    refuses=(COMPLEX,),
    inplace=False,
    tensors_only=True,
    doc="The larger of two elements, or the one that is not NaN.",
    self=lambda grad, self, other: only_where(grad, (self >= other) | other.isnan()),
    other=lambda grad, self, other: only_where(grad, ~((self >= other) | other.isnan())),
)
fmin = binary(
    "fmin",
    np.fmin,
    refuses=(COMPLEX,),
    inplace=False,
    tensors_only=True,
    doc="The smaller of two elements, or the one that is not NaN.",
    self=lambda grad, self, other: only_where(grad, (self <= other) | other.isnan()),
    other=lambda grad, self, other: only_where(grad, ~((self <= other) | other.isnan())),
)
