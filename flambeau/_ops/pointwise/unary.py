"""Functions of one tensor, element by element: signs, rounding, exponentials, logarithms, trigonometry."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..._core.arrays.quick import ONES
from ..._core.backend import as_array
from ..._core.dtype import BOOL, COMPLEX, FLOAT, INTEGER, bool_, finfo, from_numpy_dtype
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL, on
from ..._dispatch.arguments.precision import as_floating, in_single, no_gradient, only_where, refuse
from ..._dispatch.axes import ELEMENTS
from ..._dispatch.changes.exact_out import store_exactly
from ..._dispatch.compiled_body import compiled_at_any_size, pointwise, pointwise_at_any_size
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.elementwise import FLOATING, TO_BOOL, TO_REAL, change, unary
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import export_method, public
from .binary import conj

# ----- signs and rounding ------------------------------------------------------------------------------------------

neg = unary(
    "neg",
    # Not np.negative itself, which would be given strided outputs by neg_(): it then reads wrong elements (NumPy 2.4
    # on ARM, where the distance of elements in memory is the square of their size).
    lambda x: np.negative(x),
    "negative",
    refuses=(BOOL,),
    derivative=lambda grad: -grad,
    doc="`-input`.",
    complaints={
        BOOL: (
            RuntimeError,
            "Negation, the `-` operator, on a bool tensor is not supported. "  # noqa: ISC004
            "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
        )
    },
)
abs = unary(
    "abs",
    np.absolute,
    "absolute",
    rule=TO_REAL,
    refuses=(BOOL,),
    inplace=False,
    derivative=lambda grad, self: grad * self.sgn(),
    doc="Absolute value.",
)


@public("absolute_")
def abs_(input: Tensor) -> Tensor:
    """In-place form of `abs`."""
    if input.dtype.is_complex:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return change(abs.op, input)


@compiled_at_any_size
def _sign(x: Array) -> Array:
    # NumPy's sign of NaN is NaN; here it is 0.
    if x.dtype == bool:
        return x | x
    return np.subtract(x > 0, x < 0, dtype=x.dtype) if x.dtype.kind != "u" else (x > 0).astype(x.dtype)


def _sgn(x: Array) -> Array:
    if x.dtype.kind != "c":
        return _sign(x)
    size = np.abs(x)
    return np.where(size == 0, x.dtype.type(0), x / size)


def _sgn_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    if not self.is_complex():
        return no_gradient(grad)
    size = self.abs()
    tangential = (grad / size - (result * (grad.conj() * result).real) / size) * 1.0
    return only_where(tangential, size != 0)


sign = unary(
    "sign",
    _sign,
    refuses=(COMPLEX,),
    derivative=no_gradient,
    doc="-1, 0 or 1.",
    complaints={
        COMPLEX: (
            NotImplementedError,
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
        )
    },
)
sgn = unary(
    "sgn", _sgn, derivative=_sgn_gradient, doc="Sign; of a complex number the number divided by its absolute value."
)
signbit = unary(
    "signbit",
    lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0,
    rule=TO_BOOL,
    refuses=(COMPLEX,),
    inplace=False,
    doc="Whether the sign bit is set.",
    truth_only=True,
)

_WHOLE = (BOOL, COMPLEX)
floor = unary(
    "floor",
    np.floor,
    "special.floor",
    refuses=_WHOLE,
    derivative=no_gradient,
    doc="Rounded down.",
    complaints={COMPLEX: (NotImplementedError, "floor is not supported for complex inputs")},
)
ceil = unary(
    "ceil",
    np.ceil,
    refuses=_WHOLE,
    derivative=no_gradient,
    doc="Rounded up.",
    complaints={COMPLEX: (NotImplementedError, "ceil is not supported for complex inputs")},
)
trunc = unary(
    "trunc",
    np.trunc,
    "fix",
    refuses=_WHOLE,
    derivative=no_gradient,
    doc="Rounded towards zero.",
    complaints={COMPLEX: (NotImplementedError, "trunc is not supported for complex inputs")},
)
frac = unary(
    "frac",
    lambda x: x - np.trunc(x),
    refuses=(BOOL, INTEGER, COMPLEX),
    derivative=lambda grad: grad * 1,
    doc="The part after the decimal point, with the sign of `input`.",
)
_round = unary(
    "round",
    lambda x: np.rint(x) if x.dtype.kind == "f" else np.positive(x),
    refuses=_WHOLE,
    derivative=no_gradient,
    method=False,
    inplace=False,
)


@primitive("RoundBackward1", axes=ELEMENTS, self=no_gradient)
@in_single
def _round_decimals(self: Array, decimals: int) -> Array:
    size = max(decimals, -decimals)
    scale = self.dtype.type(10.0**size if size <= 308 else math.inf)
    if decimals < 0:
        return np.rint(self / scale) * scale
    return np.rint(self * scale) / scale


@public("special.round", function=False, method=False)
def _special_round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Rounded to the nearest number with that many decimals, halves to even."""
    return round(input, decimals=decimals, out=out)


@public(inplace=True)
def round(input: Tensor, *, decimals: int | None = None, out: Tensor | None = None) -> Tensor:
    """Rounded to the nearest number with that many decimals (none), halves to even."""
    if decimals is None:
        return _round(input, out=out)
    refuse("round", input, BOOL, INTEGER, COMPLEX)
    return store_exactly(_round_decimals(input, decimals), out)


@public()
def positive(input: Tensor) -> Tensor:
    """`input` itself."""
    if input.dtype is bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


# ----- exponentials and logarithms ---------------------------------------------------------------------------------


def _scaled(x: Array, factor: float) -> Array:
    """Complex numbers times a real one, part by part: zeros keep their signs, and NaN stays in its part."""
    result = np.empty_like(x)
    np.multiply(x.real, factor, out=result.real)
    np.multiply(x.imag, factor, out=result.imag)
    return result


exp = unary(
    "exp",
    np.exp,
    "special.exp",
    rule=FLOATING,
    derivative=lambda grad, result: grad * conj(result),
    doc="e ** input.",
    autocast=on(cuda=FULL),
)
exp2 = unary(
    "exp2",
    lambda x: np.exp2(x) if x.dtype.kind == "f" else np.exp(_scaled(x, math.log(2))),
    "special.exp2",
    rule=FLOATING,
    derivative=lambda grad, result: grad * conj(result) * math.log(2),
    doc="2 ** input.",
)
expm1 = unary(
    "expm1",
    np.expm1,
    "special.expm1",
    rule=FLOATING,
    derivative=lambda grad, result: grad * (conj(result) + 1),
    doc="e ** input - 1, accurate near 0.",
    autocast=on(cuda=FULL),
)
log = unary(
    "log",
    np.log,
    rule=FLOATING,
    derivative=lambda grad, self: grad / conj(self),
    doc="Natural logarithm.",
    autocast=on(cuda=FULL),
)
log2 = unary(
    "log2",
    np.log2,
    rule=FLOATING,
    derivative=lambda grad, self: grad / (conj(self) * math.log(2)),
    doc="Logarithm to base 2.",
    autocast=on(cuda=FULL),
)
log10 = unary(
    "log10",
    np.log10,
    rule=FLOATING,
    derivative=lambda grad, self: grad / (conj(self) * math.log(10)),
    doc="Logarithm to base 10.",
    autocast=on(cuda=FULL),
)


def _log1p(x: Array) -> Array:
    if x.dtype.kind != "c":
        return np.log1p(x)
    real, imag = x.real, x.imag
    near = (np.abs(real) < 0.5) & (np.abs(imag) < 0.5)  # there the magnitude is near 1, its logarithm needs more digits
    size = np.where(near, np.log1p(real * (2 + real) + imag * imag) * 0.5, np.log(np.hypot(1 + real, imag)))
    return (size + 1j * np.arctan2(imag, 1 + real)).astype(x.dtype)


log1p = unary(
    "log1p",
    _log1p,
    "special.log1p",
    rule=FLOATING,
    derivative=lambda grad, self: grad / conj(self + 1),
    doc="log(1 + input), accurate near 0.",
    autocast=on(cuda=FULL),
)
sqrt = unary(
    "sqrt", np.sqrt, rule=FLOATING, derivative=lambda grad, result: grad / (2 * conj(result)), doc="Square root."
)
rsqrt = unary(
    "rsqrt",
    lambda x: 1 / np.sqrt(x),
    rule=FLOATING,
    derivative=lambda grad, result: grad * -0.5 * conj(result * result * result),
    doc="1 / sqrt(input).",
    autocast=on(cuda=FULL),
)
reciprocal = unary(
    "reciprocal",
    lambda x: np.true_divide(1, x, dtype=x.dtype),
    rule=FLOATING,
    derivative=lambda grad, result: -grad * conj(result * result),
    doc="1 / input.",
    autocast=on(cuda=FULL),
)


def _sigmoid(x: Array) -> Array:
    result = np.negative(x)
    if type(result) is not np.ndarray:
        result = as_array(result)
    one = ONES.get(result.dtype, 1) if type(x) is np.ndarray else 1
    np.exp(result, result)
    np.add(result, one, result)
    return np.true_divide(one, result, result)


def _sigmoid_gradient(grad: Tensor, result: Tensor) -> Tensor:
    if result._kind.dtype.is_complex:
        return grad * conj((1 - result) * result)
    return _sigmoid_backward(grad, result)


@primitive(
    "SigmoidBackwardBackward0",
    self=lambda grad, output: _sigmoid_gradient(grad, output),
    output=lambda grad, self, output: grad * self * (1 - 2 * output),
)
@pointwise
@in_single
def _sigmoid_backward(self: Array, output: Array) -> Array:
    result = 1 - output
    return self * result * output


def _tanh_gradient(grad: Tensor, result: Tensor) -> Tensor:
    if result._kind.dtype.is_complex:
        return grad * conj(1 - result * result)
    return _tanh_backward(grad, result)


@primitive(
    "TanhBackwardBackward0",
    self=lambda grad, output: _tanh_gradient(grad, output),
    output=lambda grad, self, output: grad * self * (-2 * output),
)
@pointwise
@in_single
def _tanh_backward(self: Array, output: Array) -> Array:
    return self * (1 - output * output)


sigmoid = unary(
    "sigmoid",
    _sigmoid,
    "special.expit",
    "nn.functional.sigmoid",
    rule=FLOATING,
    derivative=_sigmoid_gradient,
    doc="1 / (1 + exp(-input)).",
)


def _logit_gradient(grad: Tensor, self: Tensor, eps: float | None) -> Tensor:
    gradient = grad / (self * (1 - self))
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    inside = (self >= low) & (self <= high)
    if eps is not None:
        return only_where(gradient, inside)
    return gradient.where(inside, math.nan)


@primitive("LogitBackward0", axes=ELEMENTS, self=_logit_gradient)
@in_single
def _logit(self: Array, eps: float | None) -> Array:
    x = self if eps is None else np.clip(self, self.dtype.type(eps), self.dtype.type(1 - eps))
    return _log_odds(x)


@pointwise
def _log_odds(x: Array) -> Array:
    return np.log(x / (1 - x))


def _logit_tangent(tangent: Tensor, result: Tensor, self: Tensor, eps: float | None) -> Tensor:
    """As `_logit_gradient`, but that infinite slopes at the ends are left out before they meet a zero."""
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    inside = (self >= low) & (self <= high)
    slope = (self * (1 - self)).where(inside, math.nan if eps is None else 1.0)
    return tangent / slope if eps is None else only_where(tangent / slope, inside)


_logit.tangent = _logit_tangent


@public("special.logit", inplace=True, out=write_out)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """The inverse of `sigmoid`; with `eps`, `input` is first clamped to [eps, 1 - eps]."""
    refuse("logit", input, COMPLEX)
    return _logit(as_floating(input), eps)


# ----- trigonometry ------------------------------------------------------------------------------------------------

sin = unary("sin", np.sin, rule=FLOATING, derivative=lambda grad, self: grad * conj(self.cos()), doc="Sine.")
cos = unary("cos", np.cos, rule=FLOATING, derivative=lambda grad, self: grad * -conj(self.sin()), doc="Cosine.")
tan = unary(
    "tan",
    np.tan,
    rule=FLOATING,
    derivative=lambda grad, result: grad * conj(1 + result * result),
    doc="Tangent.",
    autocast=on(cuda=FULL),
)
asin = unary(
    "asin",
    np.arcsin,
    "arcsin",
    rule=FLOATING,
    derivative=lambda grad, self: grad * conj((1 - self * self).rsqrt()),
    doc="Inverse sine.",
    autocast=on(cuda=FULL),
)
acos = unary(
    "acos",
    np.arccos,
    "arccos",
    rule=FLOATING,
    derivative=lambda grad, self: grad * -conj((1 - self * self).rsqrt()),
    doc="Inverse cosine.",
    autocast=on(cuda=FULL),
)
atan = unary(
    "atan",
    np.arctan,
    "arctan",
    rule=FLOATING,
    derivative=lambda grad, self: grad / conj(self * self + 1),
    doc="Inverse tangent.",
)
sinh = unary(
    "sinh",
    np.sinh,
    rule=FLOATING,
    derivative=lambda grad, self: grad * conj(self.cosh()),
    doc="Hyperbolic sine.",
    autocast=on(cuda=FULL),
)
cosh = unary(
    "cosh",
    np.cosh,
    rule=FLOATING,
    derivative=lambda grad, self: grad * conj(self.sinh()),
    doc="Hyperbolic cosine.",
    autocast=on(cuda=FULL),
)
tanh = unary("tanh", np.tanh, "nn.functional.tanh", rule=FLOATING, derivative=_tanh_gradient, doc="Hyperbolic tangent.")
asinh = unary(
    "asinh",
    np.arcsinh,
    "arcsinh",
    rule=FLOATING,
    derivative=lambda grad, self: grad * conj((self * self + 1).rsqrt()),
    doc="Inverse hyperbolic sine.",
)


def _acosh_gradient(grad: Tensor, self: Tensor) -> Tensor:
    if self._kind.dtype.is_complex:
        return grad * conj((self + 1).rsqrt() * (self - 1).rsqrt())
    return grad * (self * self - 1).rsqrt()


acosh = unary(
    "acosh", np.arccosh, "arccosh", rule=FLOATING, derivative=_acosh_gradient, doc="Inverse hyperbolic cosine."
)
atanh = unary(
    "atanh",
    np.arctanh,
    "arctanh",
    rule=FLOATING,
    derivative=lambda grad, self: grad / conj(1 - self * self),
    doc="Inverse hyperbolic tangent.",
)
deg2rad = unary(
    "deg2rad",
    lambda x: x * (math.pi / 180),
    rule=FLOATING,
    refuses=(COMPLEX,),
    node="Deg2RadBackward0",
    derivative=lambda grad: grad * (math.pi / 180),
    doc="Degrees to radians.",
)
rad2deg = unary(
    "rad2deg",
    lambda x: x * (180 / math.pi),
    rule=FLOATING,
    refuses=(COMPLEX,),
    node="Rad2DegBackward0",
    derivative=lambda grad: grad * (180 / math.pi),
    doc="Radians to degrees.",
)


@compiled_at_any_size
def _sinc(x: Array) -> Array:
    angle = x * x.dtype.type(math.pi)
    return np.where(x == 0, x.dtype.type(1), np.sin(angle) / angle)


def _sinc_gradient(grad: Tensor, self: Tensor) -> Tensor:
    angle = self * math.pi
    square = angle * self
    slope = (angle.cos() * angle - angle.sin()) / square
    return only_where(grad * conj(slope), square != 0)


sinc = unary("sinc", _sinc, "special.sinc", rule=FLOATING, derivative=_sinc_gradient, doc="sin(pi x) / (pi x), 1 at 0.")


def _angle_gradient(grad: Tensor, self: Tensor) -> Tensor:
    if not self._kind.dtype.is_complex:
        return no_gradient(grad)
    size = self.abs()
    return only_where(grad * self / (size * size) * 1j, size != 0)


@primitive("AngleBackward0", axes=ELEMENTS, self=_angle_gradient)
@in_single
def _angle(self: Array) -> Array:
    if self.dtype.kind == "c":
        return np.angle(self)
    return np.where(np.isnan(self), self, np.where(self < 0, self.dtype.type(math.pi), self.dtype.type(0)))


@public(out=write_out)
def angle(input: Tensor) -> Tensor:
    """The argument of complex numbers; of negative real ones pi."""
    return _angle(as_floating(input))


# ----- tests of single values --------------------------------------------------------------------------------------


def _of_floats(test: Any, otherwise: bool) -> Any:
    """A test that only floating-point numbers can pass, or fail."""
    return lambda x: test(x) if x.dtype.kind in "fc" else np.full(x.shape, otherwise)


def _test(name: str, body: Any, doc: str, **options: Any) -> Any:
    """A test of each element: neither in place nor with `out=`, if `options` do not say otherwise."""
    return unary(name, body, rule=TO_BOOL, inplace=False, doc=doc, **options or {"takes_out": False})


isnan = _test("isnan", _of_floats(np.isnan, False), "Whether each element is NaN.")
isinf = _test("isinf", _of_floats(np.isinf, False), "Whether each element is infinite.")
isfinite = _test("isfinite", _of_floats(np.isfinite, True), "Whether each element is finite.")
_of_real = {"refuses": (COMPLEX,), "truth_only": True}
isposinf = _test("isposinf", _of_floats(np.isposinf, False), "Whether each element is positive infinity.", **_of_real)
isneginf = _test("isneginf", _of_floats(np.isneginf, False), "Whether each element is negative infinity.", **_of_real)
isreal = _test(
    "isreal",
    lambda x: x.imag == 0 if x.dtype.kind == "c" else np.ones(x.shape, bool, like=x),
    "Whether each element has no imaginary part.",
)
logical_not = unary("logical_not", np.logical_not, rule=TO_BOOL, doc="Whether each element is zero.")
bitwise_not = unary("bitwise_not", np.invert, refuses=(FLOAT, COMPLEX), doc="Bits inverted; of bool the logical not.")


@pointwise_at_any_size
@in_single
def _replaced(self: Array, nan: float, high: float, low: float) -> Array:
    with np.errstate(over="ignore"):  # a number that the dtype cannot hold is infinite
        nan, high, low = (self.dtype.type(each) for each in (nan, high, low))
    finite = np.where(self == np.inf, high, np.where(self == -np.inf, low, self))
    return np.where(self != self, nan, finite)


@primitive("NanToNumBackward0", axes=ELEMENTS, self=lambda grad, self: grad * self.isfinite())
def _nan_to_num(self: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Array:
    largest = _largest_number(self.dtype)
    numbers = nan or 0.0, largest if posinf is None else posinf, -largest if neginf is None else neginf
    if self.dtype.kind == "c":
        result = np.empty_like(self)
        result.real, result.imag = (_replaced(part, *numbers) for part in (self.real, self.imag))
        return result
    return _replaced(self, *numbers)


@functools.cache
def _largest_number(dtype: np.dtype[Any]) -> float:
    return finfo(from_numpy_dtype(dtype)).max


@public(inplace=True, out=True)
def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """NaN and infinities replaced, by default by zero and by the largest finite numbers."""
    if input._kind.dtype.category < FLOAT:
        return input.clone()
    return _nan_to_num(input, nan, posinf, neginf)


export_method(neg, "__neg__")
export_method(positive, "__pos__")
export_method(abs, "__abs__")
