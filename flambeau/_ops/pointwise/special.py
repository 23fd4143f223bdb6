"""Special functions of tensors: the error function, the gamma function, Bessel functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.backend import as_array
from ..._core.dtype import COMPLEX, finfo
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL, on
from ..._dispatch.arguments.precision import as_floating, in_single, only_where, refuse
from ..._dispatch.arguments.promotion import Operand
from ..._dispatch.axes import ELEMENTS
from ..._dispatch.compiled_body import compiled_at_any_size
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.elementwise import FLOATING, binary, unary
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from . import special_kernels as kernels
from .binary import mul_number

_REAL: dict[str, Any] = {"rule": FLOATING, "refuses": (COMPLEX,)}
_TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)

erf = unary(
    "erf",
    kernels.erf,
    "special.erf",
    **_REAL,
    doc="The error function.",
    derivative=lambda grad, self: grad * (_TWO_OVER_SQRT_PI * (-self * self).exp()),
)
erfc = unary(
    "erfc",
    kernels.erfc,
    "special.erfc",
    **_REAL,
    doc="1 - erf(input).",
    derivative=lambda grad, self: grad * (-_TWO_OVER_SQRT_PI * (-self * self).exp()),
)
erfinv = unary(
    "erfinv",
    kernels.erfinv,
    "special.erfinv",
    **_REAL,
    doc="The inverse of `erf`.",
    derivative=lambda grad, result: grad * ((result * result).exp() / _TWO_OVER_SQRT_PI),
    autocast=on(cuda=FULL),
)
lgamma = unary(
    "lgamma",
    kernels.lgamma,
    "special.gammaln",
    **_REAL,
    doc="The logarithm of the absolute value of the gamma function.",
    derivative=lambda grad, self: grad * self.digamma(),
)
digamma = unary(
    "digamma",
    kernels.digamma,
    "special.digamma",
    "special.psi",
    **_REAL,
    doc="The derivative of `lgamma`.",
    derivative=lambda grad, self: grad * self.polygamma(1),
)


@primitive("PolygammaBackward0", axes=ELEMENTS, self=lambda grad, self, n: grad * self.polygamma(n + 1))
@in_single
def _polygamma(self: Array, n: int) -> Array:
    return kernels.polygamma(n, self)


@public(function=False, inplace=True, name="polygamma")
def _polygamma_method(input: Tensor, n: int) -> Tensor:
    """The derivative of order `n` of `digamma`."""
    return polygamma(n, input)


@public("special.polygamma", method=False, out=write_out)
def polygamma(n: int, input: Tensor) -> Tensor:
    """The derivative of order `n` of `digamma`."""
    refuse("polygamma", input, COMPLEX)
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n: it is {n}.")
    return digamma(input) if n == 0 else _polygamma(as_floating(input), n)


_METHODLESS: dict[str, Any] = {"method": False, "inplace": False}


def _i0_gradient(grad: Tensor, self: Tensor) -> Tensor:
    return grad * i1(self)


i0 = unary("i0", kernels.i0, "special.i0", **_REAL, doc="Modified Bessel function of order 0.", derivative=_i0_gradient)


def _is_tiny(self: Any) -> Any:
    """Where slopes are taken to be those at 0: quotients would lose their digits. NaN counts as such, as in PyTorch."""
    return ~(self.abs() > finfo(self.dtype).eps)


def _i1_slope(self: Any) -> Any:
    tiny = _is_tiny(self)
    away = only_where(self, ~tiny) + tiny  # so that no quotient is infinite
    return only_where(i0(away) - i1(away) / away, ~tiny) + 0.5 * tiny


def _i0e_slope(self: Any, result: Any) -> Any:
    return i1e(self) - self.sgn() * result


def _i1e_slope(self: Any, result: Any) -> Any:
    tiny = _is_tiny(self)
    away = only_where(self, ~tiny) + tiny
    return only_where(i0e(away) - result * (away.sgn() + 1 / away), ~tiny) + 0.5 * tiny


i1 = unary(
    "special_i1",
    kernels.i1,
    "special.i1",
    **_REAL,
    **_METHODLESS,
    node="SpecialI1Backward0",
    doc="Modified Bessel function of order 1.",
    derivative=lambda grad, self: grad * _i1_slope(self),
)
i0e = unary(
    "special_i0e",
    kernels.i0e,
    "special.i0e",
    **_REAL,
    **_METHODLESS,
    node="SpecialI0EBackward0",
    doc="exp(-|x|) I0(x).",
    derivative=lambda grad, self, result: grad * _i0e_slope(self, result),
)
i1e = unary(
    "special_i1e",
    kernels.i1e,
    "special.i1e",
    **_REAL,
    **_METHODLESS,
    node="SpecialI1EBackward0",
    doc="exp(-|x|) I1(x).",
    derivative=lambda grad, self, result: grad * _i1e_slope(self, result),
)
erfcx = unary(
    "special_erfcx",
    kernels.erfcx,
    "special.erfcx",
    **_REAL,
    **_METHODLESS,
    node="SpecialErfcxBackward0",
    doc="exp(x ** 2) erfc(x).",
    derivative=lambda grad, self, result: grad * (2 * self * result - _TWO_OVER_SQRT_PI),
)


@compiled_at_any_size
def _entr(x: Array) -> Array:
    return np.where(
        x > 0, -x * np.log(x), np.where(x == 0, x.dtype.type(0), np.where(np.isnan(x), x, x.dtype.type(-np.inf)))
    )


entr = unary(
    "special_entr",
    _entr,
    "special.entr",
    **_REAL,
    **_METHODLESS,
    node="SpecialEntrBackward0",
    doc="-x log(x).",
    derivative=lambda grad, self: grad * -(1 + self.log()),
)
ndtri = unary(
    "special_ndtri",
    kernels.ndtri,
    "special.ndtri",
    **_REAL,
    **_METHODLESS,
    node="SpecialNdtriBackward0",
    doc="The inverse of `ndtr`.",
    derivative=lambda grad, result: grad * (math.sqrt(2 * math.pi) * (result * result / 2).exp()),
)


@compiled_at_any_size
def _log_ndtr(x: Array) -> Array:
    t = x * math.sqrt(0.5)
    return np.where(x < -1, np.log(kernels.erfcx(-t) / 2) - t * t, np.log1p(-kernels.erfc(t) / 2)).astype(
        x.dtype, copy=False
    )


log_ndtr = unary(
    "special_log_ndtr",
    _log_ndtr,
    "special.log_ndtr",
    **_REAL,
    **_METHODLESS,
    node="SpecialLogNdtrBackward0",
    doc="The logarithm of `ndtr`.",
    derivative=lambda grad, self, result: grad * (-(result + self * self / 2)).exp() / math.sqrt(2 * math.pi),
)


@public("special.ndtr", function=False, method=False, out=write_out)
def ndtr(input: Tensor) -> Tensor:
    """The area under the normal density up to `input`."""
    return mul_number(erfc(as_floating(input) * -math.sqrt(0.5)), 0.5)


def _no_order_derivative(grad: Tensor) -> Tensor:
    raise NotImplementedError("the derivative for 'zeta' is not implemented.")


def _zeta_gradient(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    return grad * -self * zeta(self + 1, other)


_zeta = binary(
    "special_zeta",
    kernels.zeta,
    **_REAL,
    node="SpecialZetaBackward0",
    method=False,
    public=False,
    inplace=False,
    self=_no_order_derivative,
    other=_zeta_gradient,
)


@public("special.zeta", function=False, method=False, out=write_out)
def zeta(input: Operand, other: Operand) -> Tensor:
    """The Hurwitz zeta function."""
    return _zeta(input, other)


def _mvlgamma_gradient(grad: Tensor, self: Tensor, p: int) -> Tensor:
    total = (self + 0.0).digamma()  # on the same side of the pole at either zero
    for index in range(1, p):
        total = total + (self - index / 2).digamma()
    return grad * total


@primitive("MvlgammaBackward0", axes=ELEMENTS, self=_mvlgamma_gradient)
@in_single
def _mvlgamma(self: Array, p: int) -> Array:
    total = kernels.lgamma(self) + self.dtype.type(math.log(math.pi) * p * (p - 1) / 4)
    for index in range(1, p):
        total = total + kernels.lgamma(as_array(self - self.dtype.type(index / 2)))
    return total


@public("special.multigammaln", inplace=True, out=write_out)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`."""
    refuse("mvlgamma", input, COMPLEX)
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1: it is {p}")
    if p >= 1 << 40:
        raise MemoryError(f"a sum over so many dimensions needs {p * 8} bytes")
    return _mvlgamma(as_floating(input), p)
