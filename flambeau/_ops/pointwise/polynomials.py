"""Orthogonal polynomials of tensors: Chebyshev, Hermite, Laguerre and Legendre; as in PyTorch, without derivatives.

The degree is an operand like the argument: it broadcasts, and its fraction is dropped. A negative degree gives 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._core.backend import read
from ..._core.dtype import COMPLEX
from ..._core.tensor import Tensor
from ..._dispatch.arguments.promotion import Operand
from ..._dispatch.dispatch import Array
from ..._dispatch.elementwise import FLOATING, Elementwise, run_binary
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public

First = Callable[[Array], Array]
"""The polynomial of degree 1 of an argument."""
Step = Callable[[Array, int, Array, Array], Array]
"""From the argument, k and the polynomials of degrees k and k - 1 to the one of degree k + 1."""
Wave = Callable[[Array, Array], Array]
"""A polynomial in closed form: from the degree and the angle whose cosine is the argument."""

_WAVES_FROM = 7
"""The degree from which the closed form is more exact than the recurrence."""


def _recurrence(x: Array, degree: Array, first: First, step: Step) -> Array:
    """The polynomial of each degree: all elements go up together, and each keeps the one that it asked for.

    float32 is computed in float64, but what overflows it is infinite from there on, as in PyTorch.
    """
    limit = np.finfo(x.dtype).max if x.dtype == np.float32 else None
    given, x = x.dtype, x.astype(np.float64)
    before, current = np.ones_like(x), first(x)
    result = np.where(degree <= 0, before, current)
    highest = read(degree.max(initial=0))
    k = 1
    while k < highest:
        before, current = current, step(x, k, current, before)
        if limit is not None:
            current = np.where(np.abs(current) > limit, np.copysign(np.inf, current), current)
        k += 1
        result = np.where(degree >= k, current, result)
        if k % 64 == 0 and read(np.isnan(current[degree > k]).all()):  # what is no number stays none
            break
    return result.astype(given)


def _evaluate(x: Array, n: Array, compute: Callable[[Array, Array], Array]) -> Array:
    """`compute` for the valid degrees; a negative degree gives 0, one beyond 64 bits NaN."""
    x, n = np.broadcast_arrays(x, n)
    beyond = n >= 2.0**63
    degree = np.trunc(np.where(beyond | np.isnan(n), n.dtype.type(0), n))
    result = compute(x, degree)
    return np.where(beyond, result.dtype.type(np.nan), np.where(degree < 0, result.dtype.type(0), result))


def _publish(name: str, body: Callable[[Array, Array], Array], doc: str) -> None:
    op = Elementwise(name, body, FLOATING, None, ("self", "other"), {}, (COMPLEX,))

    def function(x: Operand, n: Operand) -> Tensor:
        return run_binary(op, x, n)

    function.__doc__ = doc
    public(f"special.{name}", function=False, method=False, out=write_out)(function)


def _by_recurrence(name: str, first: First, step: Step, doc: str) -> None:
    def body(x: Array, n: Array) -> Array:
        return _evaluate(x, n, lambda x, degree: _recurrence(x, degree, first, step))

    _publish(name, body, doc)


def _chebyshev(kind: str, first: First, wave: Wave, at_one: Wave, at_minus_one: Wave) -> None:
    """The polynomials of one kind and their shifted form; `at_one` and `at_minus_one` give the values at the ends."""

    def compute(x: Array, degree: Array) -> Array:
        inner = (np.abs(x) < 1) & (degree >= _WAVES_FROM)
        one, minus_one = x == 1, x == -1
        closed = inner | one | minus_one
        result = _recurrence(x, np.where(closed, degree.dtype.type(0), degree), first, _chebyshev_step)
        result[inner] = wave(degree[inner].astype(np.float64), np.arccos(x[inner].astype(np.float64)))
        sign = 1 - 2 * (degree % 2)
        result = np.where(one, at_one(degree, sign), result)
        return np.where(minus_one, at_minus_one(degree, sign), result)

    def body(x: Array, n: Array) -> Array:
        return _evaluate(x, n, compute)

    def shifted(x: Array, n: Array) -> Array:
        return _evaluate(2 * x - 1, n, compute)

    letter = kind[-1]
    _publish(f"chebyshev_polynomial_{letter}", body, f"The Chebyshev polynomial of the {kind[:-2]} kind of degree `n`.")
    _publish(
        f"shifted_chebyshev_polynomial_{letter}",
        shifted,
        f"The Chebyshev polynomial of the {kind[:-2]} kind of degree `n`, at 2 x - 1.",
    )


def _chebyshev_step(x: Array, k: int, current: Array, before: Array) -> Array:
    return 2 * x * current - before


_chebyshev(
    "first t",
    lambda x: x,
    lambda n, angle: np.cos(n * angle),
    lambda n, sign: np.ones_like(n),
    lambda n, sign: sign,
)
_chebyshev(
    "second u",
    lambda x: 2 * x,
    lambda n, angle: np.sin((n + 1) * angle) / np.sin(angle),
    lambda n, sign: n + 1,
    lambda n, sign: sign * (n + 1),
)
_chebyshev(
    "third v",
    lambda x: 2 * x - 1,
    lambda n, angle: np.cos((n + 0.5) * angle) / np.cos(angle / 2),
    lambda n, sign: np.ones_like(n),
    lambda n, sign: sign * (2 * n + 1),
)
_chebyshev(
    "fourth w",
    lambda x: 2 * x + 1,
    lambda n, angle: np.sin((n + 0.5) * angle) / np.sin(angle / 2),
    lambda n, sign: 2 * n + 1,
    lambda n, sign: sign,
)
_by_recurrence(
    "hermite_polynomial_h",
    lambda x: 2 * x,
    lambda x, k, current, before: 2 * x * current - 2 * k * before,
    "The physicist's Hermite polynomial of degree `n`.",
)
_by_recurrence(
    "hermite_polynomial_he",
    lambda x: x,
    lambda x, k, current, before: x * current - k * before,
    "The probabilist's Hermite polynomial of degree `n`.",
)
_by_recurrence(
    "laguerre_polynomial_l",
    lambda x: 1 - x,
    lambda x, k, current, before: ((2 * k + 1 - x) * current - k * before) / (k + 1),
    "The Laguerre polynomial of degree `n`.",
)
_by_recurrence(
    "legendre_polynomial_p",
    lambda x: x,
    lambda x, k, current, before: ((2 * k + 1) * x * current - k * before) / (k + 1),
    "The Legendre polynomial of degree `n`.",
)
