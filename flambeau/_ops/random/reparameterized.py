"""How random numbers move with the parameters of their distribution, at a fixed place in the unit interval.

With F the cumulative distribution function and f the density, that derivative is -(dF/da) / f. It is an integral over
the numbers on either side of the sample; of the two sides the one is taken on which the integrand keeps its sign. Near
zero there is a power series. The results have about 10 digits, of float32
4; PyTorch uses approximations good to about 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._backends.arrays import gamma_integral
from ..._core.arrays.quick import broadcast, joint_shape
from ..._dispatch.compiled_body import compiled_at_any_size
from ..pointwise import special_kernels as kernels

Array = Any


def _rule(step: float, begin: float, end: float) -> tuple[Array, Array]:
    """The exp-sinh rule: an integral over (0, oo) as a short sum, for integrands that decay on any scale near 1."""
    nodes = np.arange(begin, end + step / 2, step)
    points = np.exp(math.pi / 2 * np.sinh(nodes))
    return points, points * np.cosh(nodes) * (math.pi / 2 * step)


_POINTS, _WEIGHTS = _rule(0.05, -4.0, 4.0)


def _short_rule(count: int, scale: float) -> tuple[Array, Array]:
    """Gauss' and Laguerre's rule, of few points, in float32."""
    points, weights = np.polynomial.laguerre.laggauss(count)
    return (points * scale).astype(np.float32), (weights * np.exp(points) * scale).astype(np.float32)


_SINGLE_RULE = _short_rule(14, 0.27)
"""For float32: good to 4 digits."""
_ROWS = 2048
_FEW = 64
"""For so many numbers both ways are gone: to sort them out first takes longer."""
_TERMS, _SINGLE_TERMS = 18, 9


def _integral(
    integrand: Callable[..., Array], width: Array, points: Array, weights: Array, *parameters: Array
) -> Array:
    """The integral of `integrand(w, *parameters)` over w > 0 for each element; `width` says where it decays."""
    result = np.empty_like(width)
    for start in range(0, width.size, _ROWS):
        rows = slice(start, start + _ROWS)
        w = width[rows, None] * points
        values = integrand(w, *(each[rows, None] for each in parameters))
        result[rows] = (values * weights).sum(-1) * width[rows]
    return result


def gamma_slope(shape: Array, sample: Array) -> Array:
    """The derivative of standard gamma numbers by the shape of their distribution."""
    dtype = sample.dtype
    extent = joint_shape(shape.shape, sample.shape)
    computed = np.dtype(np.float32 if dtype.itemsize == 4 else np.float64)
    a, x = [broadcast(each, extent).astype(computed).ravel() for each in (shape, sample)]
    rule = _SINGLE_RULE if dtype.itemsize == 4 else (_POINTS, _WEIGHTS)
    near_zero = x < 0.8
    if x.size <= _FEW:
        result = np.where(near_zero, _gamma_slope_near_zero(a, x), _gamma_slope(a, x, *rule))
    else:
        result = np.empty_like(x)
        result[near_zero] = _gamma_slope_near_zero(a[near_zero], x[near_zero])
        result[~near_zero] = _gamma_slope(a[~near_zero], x[~near_zero], *rule)
    return np.where(x == 0, computed.type(0), result).astype(dtype, copy=False).reshape(extent)


def _series(log_x: Array, a: Array, term: Callable[[Array, int], Array]) -> Array:
    """The sum of c_i times the integral of log(t) t**(a + i - 1) up to x, divided by x**a; `term` gives c_i x**i.

    `log_x` is the logarithm of x less the mean of log(t) for a + 1 in place of a: so poles at zero cancel exactly.
    """
    coefficient = np.ones_like(a)
    total = log_x / a
    for index in range(1, _TERMS if a.dtype == np.float64 else _SINGLE_TERMS):
        coefficient = term(coefficient, index)
        total += coefficient * (log_x + 1 / a - 1 / (a + index)) / (a + index)
    return total


@compiled_at_any_size
def _log_distance(x: Array, a: Array) -> Array:
    """log(x) - digamma(a), of which large ones are close to each other: in float64."""
    wide = [each.astype(np.float64) for each in (x, a)]
    return (np.log(wide[0]) - kernels.digamma(wide[1])).astype(x.dtype)


@compiled_at_any_size
def _gamma_slope_near_zero(a: Array, x: Array) -> Array:
    log_x = _log_distance(x, a + 1)
    return -x * np.exp(x) * _series(log_x, a, lambda last, index: last * -x / index)


def _gamma_slope(a: Array, x: Array, points: Array, weights: Array) -> Array:
    distance = _log_distance(x, a)
    side = np.where(distance > 0, x.dtype.type(1), x.dtype.type(-1))

    def integrand(w: Array, a: Array, x: Array, distance: Array, side: Array) -> Array:
        return (distance + w) * np.exp(side * a * w - x * np.expm1(side * w))

    distance, width = np.abs(distance), 1 / (np.abs(a - x) + np.sqrt(x))
    found = gamma_integral(a, x, distance, side, width, points, weights)
    if found is not None:
        return x * found
    return x * _integral(integrand, width, points, weights, a, x, distance, side)


def beta_slope(sample: Array, shape: Array, total: Array) -> Array:
    """The derivative of beta numbers by `shape`, the first of two shapes with the sum `total`, over 1 - sample."""
    dtype = sample.dtype
    extent = joint_shape(sample.shape, shape.shape, total.shape)
    x, a, sums = (broadcast(each, extent).astype(np.float64).ravel() for each in (sample, shape, total))
    b = sums - a
    near_zero = (x < 0.1) & (x * b < 0.5)
    result = np.empty_like(x)
    with np.errstate(all="ignore"):
        result[near_zero] = _beta_slope_near_zero(*(each[near_zero] for each in (x, a, b)))
        result[~near_zero] = _beta_slope(*(each[~near_zero] for each in (np.minimum(x, 1 - 2**-53), a, b)))
    return np.where(x == 0, 0.0, result).astype(dtype).reshape(extent)


def _beta_slope_near_zero(x: Array, a: Array, b: Array) -> Array:
    log_x = np.log(x) - kernels.digamma(a + 1) + kernels.digamma(a + b)
    return -x * (1 - x) ** -b * _series(log_x, a, lambda last, index: last * x * (index - b) / index)


def _beta_slope(x: Array, a: Array, b: Array) -> Array:
    distance = np.log(x) - kernels.digamma(a) + kernels.digamma(a + b)
    side = np.where(distance > 0, 1.0, -1.0)
    logit = np.log(x) - np.log1p(-x)

    def integrand(w: Array, a: Array, b: Array, logit: Array, distance: Array, side: Array) -> Array:
        y = logit + side * w
        left = np.logaddexp(0, -logit) - np.logaddexp(0, -y)  # log(t / x), t the sigmoid of y
        right = np.logaddexp(0, logit) - np.logaddexp(0, y)  # log((1 - t) / (1 - x))
        return (distance + side * left) * np.exp(a * left + b * right)

    width = 1 / (np.abs(a * (1 - x) - b * x) + np.sqrt((a + b) * x * (1 - x)))
    return x * _integral(integrand, width, _POINTS, _WEIGHTS, a, b, logit, np.abs(distance), side)
