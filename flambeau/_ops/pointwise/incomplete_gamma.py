"""The regularised incomplete gamma functions, in NumPy alone.

P(a, x) is a power series where x is below a, and 1 - Q(a, x) above, with a continued fraction for Q. Near x = a both
need some multiple of sqrt(a) terms, so for large a the density is integrated instead.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.backend import as_array, read
from ..._core.dtype import BOOL, COMPLEX, INTEGER
from ..._dispatch.dispatch import Array
from ..._dispatch.elementwise import binary
from . import special_kernels as kernels

_LARGE = 1000.0
_PRECISION = 1e-17
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
"""Coefficients of 1/a, 1/a^3, ...: lgamma(a) less Stirling's formula."""


def _log1p_less_argument(m: Array) -> Array:
    """log(1 + m) - m, without cancellation near zero."""
    near = np.abs(m) < 0.1
    small = np.where(near, m, 0.0)
    total = np.zeros_like(small)
    for power in range(18, 1, -1):
        total = total * small + (-1) ** (power + 1) / power
    return np.where(near, total * small * small, np.log1p(np.where(near, 0.0, m)) - m)


def _density(a: Array, x: Array) -> Array:
    """x^a exp(-x) / gamma(a), also where the factors overflow."""
    wide = np.maximum(a, 10.0)
    inverse = 1 / wide
    correction = kernels.polynomial(_STIRLING, inverse * inverse) * inverse
    far = np.exp(wide * _log1p_less_argument((x - wide) / wide) - correction) * np.sqrt(wide / (2 * math.pi))
    near = np.exp(a * np.log(x) - x - kernels.lgamma(a))
    return np.where(a >= 10, far, near)


def _series(a: Array, x: Array) -> Array:
    """P(a, x) by its power series."""
    term = 1 / a
    total = term.copy()
    step = a.copy()
    while read(np.any(term > total * _PRECISION)):
        step += 1
        term = term * (x / step)
        total += term
    return total * _density(a, x)


def _fraction(a: Array, x: Array) -> Array:
    """Q(a, x) by its continued fraction, evaluated from the front (Lentz)."""
    tiny = 1e-300
    b = x + 1 - a
    c = np.full_like(x, 1 / tiny)
    d = 1 / np.where(b == 0, tiny, b)
    h = d.copy()
    for index in range(1, 2000):
        factor = -index * (index - a)
        b = b + 2
        d = factor * d + b
        d = 1 / np.where(d == 0, tiny, d)
        c = b + factor / c
        c = np.where(c == 0, tiny, c)
        change = d * c
        h = h * change
        if read(np.all(np.abs(change - 1) < 1e-16)):
            break
    return h * _density(a, x)


def _small_tail(a: Array, x: Array) -> Array:
    """Q(a, x) for small a and x, where 1 - P would cancel: -expm1 of the leading power, less the rest of the series."""
    term = np.ones_like(x)
    total = np.zeros_like(x)
    for index in range(1, 60):
        term = term * (-x / index)
        total += term / (a + index)
    power = a * np.log(x)
    return -np.expm1(power - kernels.lgamma(a + 1)) - np.exp(power - kernels.lgamma(a)) * total


def _integral(a: Array, x: Array, below: bool) -> Array:
    """The area under the density below or above x, for large a: it is close to a Gaussian with deviation sqrt(a)."""
    from numpy.polynomial.legendre import leggauss

    nodes, weights = leggauss(96)
    deviation = np.sqrt(a)
    start = np.maximum(x - 13 * deviation, 0.0) if below else x
    end = x if below else x + 14 * deviation
    half = (end - start) / 2
    points = (start + half)[..., None] + half[..., None] * nodes
    return (_density(a[..., None], points) / points * weights).sum(-1) * half


def _both(a: Array, x: Array) -> tuple[Array, Array]:
    """P and Q for positive finite a and x."""
    lower, upper = np.empty_like(a), np.empty_like(a)
    below = x < a
    large = a > _LARGE
    for choice, is_below, compute in (
        (~large & (below | (x <= 1)), True, _series),
        (~large & ~below & (x > 1), False, _fraction),
        (large & below, True, lambda s, t: _integral(s, t, True)),
        (large & ~below, False, lambda s, t: _integral(s, t, False)),
    ):
        if not read(choice.any()):
            continue
        part = np.clip(compute(a[choice], x[choice]), 0.0, 1.0)
        lower[choice], upper[choice] = (part, 1 - part) if is_below else (1 - part, part)
    small = (x <= 1) & (lower > 0.5)
    if read(small.any()):
        upper[small] = _small_tail(a[small], x[small])
    return lower, upper


def _regularised(a: Array, x: Array, lower: bool) -> Array:
    a, x = np.broadcast_arrays(a, x)
    dtype = a.dtype
    a, x = a.astype(np.float64), x.astype(np.float64)
    at_edges: Any = np.where(np.isinf(x), 1.0, np.nan)  # each line goes before those above it
    at_edges = np.where(np.isinf(a), np.where(np.isinf(x), np.nan, 0.0), at_edges)
    at_edges = np.where(x == 0, 0.0, at_edges)
    at_edges = np.where(a == 0, np.where(x > 0, 1.0, np.nan), at_edges)
    at_edges = np.where((a < 0) | (x < 0), np.nan, at_edges)
    result = as_array(at_edges if lower else 1 - at_edges)
    inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    if read(inside.any()):
        result[inside] = _both(a[inside], x[inside])[0 if lower else 1]
    return result.astype(dtype)


def _no_order_derivative(name: str) -> Any:
    def formula(grad: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{name}: input' is not implemented.")

    return formula


def _slope(self: Any, other: Any) -> Any:
    return ((self - 1) * other.log() - other - self.lgamma()).exp()


_RULES: dict[str, Any] = {"refuses": (BOOL, INTEGER, COMPLEX)}

igamma = binary(
    "igamma",
    lambda a, x: _regularised(a, x, True),
    "special.gammainc",
    **_RULES,
    doc="The regularised lower incomplete gamma function of order `input` at `other`.",
    tensors_only=True,
    self=_no_order_derivative("igamma"),
    other=lambda grad, self, other: grad * _slope(self, other),
)
igammac = binary(
    "igammac",
    lambda a, x: _regularised(a, x, False),
    "special.gammaincc",
    **_RULES,
    doc="The regularised upper incomplete gamma function of order `input` at `other`.",
    tensors_only=True,
    self=_no_order_derivative("igammac"),
    other=lambda grad, self, other: -grad * _slope(self, other),
)
