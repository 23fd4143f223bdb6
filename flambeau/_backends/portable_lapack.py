"""Decompositions and solutions of systems at `reproducible("machine")`: elementary operations alone, in a fixed order.

Products, sums, quotients and roots of float64 are rounded alike by every processor. Each function works on a batch of
matrices at once, and what it does with one does not depend on the others. Functions have the names and arguments of
those in `lapack.py`; None: their callers have a way of elementary operations themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.process.reproducibility import REPRODUCIBILITY

Array = Any

_MOST_SWEEPS = 60
_NEGLIGIBLE = float(np.finfo(np.float64).eps)


def _batch(matrices: Array) -> Array:
    """A copy in float64, the matrices along one dimension."""
    return np.array(matrices, np.float64).reshape(math.prod(matrices.shape[:-2]), *matrices.shape[-2:])


def _like(found: Array, matrices: Array, *sizes: int) -> Array:
    return found.reshape((*matrices.shape[:-2], *sizes)).astype(matrices.dtype)


def _total(values: Array, axis: int) -> Array:
    """The sum, one number after the other."""
    if not values.shape[axis]:
        return values.sum(axis)
    return np.take(np.add.accumulate(values, axis), -1, axis)


def _columns_times(left: Array, right: Array) -> Array:
    """The product of two batches of matrices."""
    total = np.zeros((len(left), left.shape[1], right.shape[2]))
    for k in range(left.shape[2]):
        total += left[:, :, k, None] * right[:, None, k]
    return total


# ----- elimination ----------------------------------------------------------------------------------------------------


def _eliminated(a: Array) -> tuple[Array, Array]:
    """L and U in one array, and which rows of the matrices come first."""
    each, size = np.arange(len(a)), a.shape[1]
    order = np.tile(np.arange(size), (len(a), 1))
    for step in range(size):
        chosen = step + abs(a[:, step:, step]).argmax(1)
        a[each, step], a[each, chosen] = a[each, chosen], a[each, step]
        order[each, step], order[each, chosen] = order[each, chosen], order[each, step]
        head = a[:, step, step]
        a[:, step + 1 :, step] /= np.where(head == 0, 1, head)[:, None]
        a[:, step + 1 :, step + 1 :] -= a[:, step + 1 :, step, None] * a[:, step, None, step + 1 :]
    return a, order


def _solved(matrices: Array, upper: bool, unit: bool, x: Array) -> Array:
    """The solutions of triangular systems, in place of `x`."""
    size = matrices.shape[1]
    for step in range(size - 1, -1, -1) if upper else range(size):
        if not unit:
            x[:, step] /= matrices[:, step, step, None]
        rest = slice(0, step) if upper else slice(step + 1, None)
        x[:, rest] -= matrices[:, rest, step, None] * x[:, step, None]
    return x


def solve(matrices: Array, right: Array) -> Array:
    """The X of A X = B; a singular A is an error."""
    batch = np.broadcast_shapes(matrices.shape[:-2], right.shape[:-2])
    x = _batch(np.broadcast_to(right, (*batch, *right.shape[-2:])))
    a, order = _eliminated(_batch(np.broadcast_to(matrices, (*batch, *matrices.shape[-2:]))))
    if (np.diagonal(a, axis1=1, axis2=2) == 0).any():
        raise np.linalg.LinAlgError("Singular matrix")
    x = np.take_along_axis(x, order[:, :, None], 1)
    found = _solved(a, True, False, _solved(a, False, True, x))
    return found.reshape(*batch, *right.shape[-2:]).astype(np.result_type(matrices, right))


def inv(matrices: Array) -> Array:
    """The inverses of a batch of square matrices."""
    return solve(matrices, np.broadcast_to(np.eye(matrices.shape[-1], dtype=matrices.dtype), matrices.shape))


def triangle_solved(matrices: Array, right: Array, upper: bool, unitriangular: bool) -> Array:
    """The X of A X = B, where only one triangle of A is looked at."""
    batch = np.broadcast_shapes(matrices.shape[:-2], right.shape[:-2])
    a, x = (_batch(np.broadcast_to(each, (*batch, *each.shape[-2:]))) for each in (matrices, right))
    with np.errstate(divide="ignore", invalid="ignore"):
        return _solved(a, upper, unitriangular, x).reshape(*batch, *right.shape[-2:]).astype(right.dtype)


def _pivots(matrices: Array) -> tuple[Array, Array]:
    """The pivots of elimination, and the signs that the swaps of rows make."""
    a, order = _eliminated(_batch(matrices))
    sign = np.ones(len(a))
    for place in range(order.shape[1]):  # each element out of its place is swapped there
        found = (order == place).argmax(1)
        each = np.arange(len(a))
        order[each, found], order[:, place] = order[:, place], place
        sign = np.where(found == place, sign, -sign)
    return np.diagonal(a, axis1=1, axis2=2), sign


def det(matrices: Array) -> Array:
    """The determinants of a batch of square matrices."""
    pivots, found = _pivots(matrices)
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(pivots.shape[1]):
            found = found * pivots[:, step]
        return _like(found, matrices)


def slogdet(matrices: Array) -> tuple[Array, Array]:
    """The signs of the determinants, and the logarithms of their sizes."""
    assert REPRODUCIBILITY.function is not None
    pivots, sign = _pivots(matrices)
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = _total(np.asarray(REPRODUCIBILITY.function("log", abs(pivots))), 1)
    for step in range(pivots.shape[1]):
        sign = sign * np.sign(pivots[:, step])
    return _like(sign, matrices), _like(sizes, matrices)


def cholesky(matrices: Array) -> Array:
    """The L of A = L L^T; an A that is not positive-definite is an error."""
    a = np.tril(_batch(matrices))
    for step in range(a.shape[1]):
        head = a[:, step, step]
        if not (head > 0).all() and not np.isnan(head).any():
            raise np.linalg.LinAlgError("Matrix is not positive definite")
        a[:, step, step] = np.sqrt(head)
        a[:, step + 1 :, step] /= a[:, step, step, None]
        below = a[:, step + 1 :, step]
        a[:, step + 1 :, step + 1 :] -= np.tril(below[:, :, None] * below[:, None])
    return _like(a, matrices, *a.shape[1:])


# ----- reflections ----------------------------------------------------------------------------------------------------


def _reflected(a: Array) -> tuple[Array, Array]:
    """R, the reflectors below its diagonal, and their factors."""
    count, rows, columns = a.shape
    steps = min(rows, columns)
    factors = np.zeros((count, steps))
    for step in range(steps):
        head, rest = a[:, step, step].copy(), a[:, step + 1 :, step]
        scale = abs(rest).max(1) if rest.shape[1] else np.zeros(count)
        usual = np.where(scale == 0, 1, np.maximum(scale, abs(head)))
        size = usual * np.sqrt(_total(np.square(a[:, step:, step] / usual[:, None]), 1))
        value = np.where(head > 0, -size, size)
        none = scale == 0
        value, divisor = np.where(none, head, value), np.where(none, 1, head - value)
        factors[:, step] = np.where(none, 0, (value - head) / np.where(none, 1, value))
        rest /= divisor[:, None]
        reflector = np.concatenate([np.ones((count, 1)), rest], 1)
        right = a[:, step:, step + 1 :]
        along = factors[:, step, None] * _total(reflector[:, :, None] * right, 1)
        right -= reflector[:, :, None] * along[:, None]
        a[:, step, step] = value
    return a, factors


def _orthonormal(a: Array, factors: Array, columns: int) -> Array:
    """So many columns of the product of the reflectors below the diagonal of `a`."""
    count, rows, _ = a.shape
    found = np.tile(np.eye(rows, columns), (count, 1, 1))
    for step in range(factors.shape[1] - 1, -1, -1):
        reflector = np.concatenate([np.ones((count, 1)), a[:, step + 1 :, step]], 1)
        part = found[:, step:]
        along = factors[:, step, None] * _total(reflector[:, :, None] * part, 1)
        part -= reflector[:, :, None] * along[:, None]
    return found


def qr(matrices: Array, mode: str) -> Any:
    """Q and R, R alone, or the reflectors under R, turned, and their factors."""
    a, factors = _reflected(_batch(matrices))
    _, rows, columns = a.shape
    if mode == "raw":
        return _like(a.swapaxes(1, 2), matrices, columns, rows), _like(factors, matrices, factors.shape[1])
    wanted = rows if mode == "complete" else min(rows, columns)
    upper = _like(np.triu(a[:, :wanted]), matrices, wanted, columns)
    return upper if mode == "r" else (_like(_orthonormal(a, factors, wanted), matrices, rows, wanted), upper)


# ----- rotations ------------------------------------------------------------------------------------------------------


def _rotation(first: Array, second: Array, product: Array, still: Array) -> tuple[Array, Array]:
    """The cosine and the sine that make a product zero; 1 and 0 where there is nothing to do."""
    ratio = (second - first) / np.where(still, 1, 2 * product)
    tangent = np.where(ratio < 0, -1.0, 1.0) / (abs(ratio) + np.sqrt(1 + ratio * ratio))
    cosine = 1 / np.sqrt(1 + tangent * tangent)
    return np.where(still, 1, cosine), np.where(still, 0, tangent * cosine)


def _turned(columns: Array, one: int, other: int, cosine: Array, sine: Array) -> None:
    first, second = columns[:, :, one].copy(), columns[:, :, other].copy()
    columns[:, :, one] = cosine[:, None] * first - sine[:, None] * second
    columns[:, :, other] = sine[:, None] * first + cosine[:, None] * second


def eigh(matrices: Array, triangle: str = "L") -> tuple[Array, Array]:
    """The eigenvalues, the smallest first, and the vectors of symmetric matrices, by Jacobi's rotations."""
    a = _batch(matrices)
    size = a.shape[1]
    lower = np.tril(a) if triangle == "L" else np.triu(a).swapaxes(1, 2)
    a = lower + np.tril(lower, -1).swapaxes(1, 2)
    vectors = np.tile(np.eye(size), (len(a), 1, 1))
    unit = _NEGLIGIBLE * np.sqrt(_total(_total(a * a, 1), 1)) / max(size, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(_MOST_SWEEPS):
            done = True
            for one in range(size - 1):
                for other in range(one + 1, size):
                    product = a[:, one, other].copy()
                    still = ~(abs(product) > unit)
                    if still.all():
                        continue
                    done = False
                    cosine, sine = _rotation(a[:, one, one], a[:, other, other], product, still)
                    _turned(a, one, other, cosine, sine)
                    _turned(a.swapaxes(1, 2), one, other, cosine, sine)
                    _turned(vectors, one, other, cosine, sine)
            if done:
                break
    values = np.diagonal(a, axis1=1, axis2=2)
    order = values.argsort(1, kind="stable")
    values = np.take_along_axis(values, order, 1)
    return _like(values, matrices, size), _like(np.take_along_axis(vectors, order[:, None], 2), matrices, size, size)


def eigvalsh(matrices: Array, triangle: str = "L") -> Array:
    """The eigenvalues, the smallest first."""
    return eigh(matrices, triangle)[0]


def _orthogonal_columns(a: Array) -> tuple[Array, Array]:
    """Matrices whose columns are orthogonal, `a` times the second ones, which are rotations."""
    size = a.shape[2]
    turns = np.tile(np.eye(size), (len(a), 1, 1))
    smallest = (_NEGLIGIBLE * abs(a).max((1, 2), initial=0)) ** 2 if a.size else np.zeros(len(a))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(_MOST_SWEEPS):
            done = True
            for one in range(size - 1):
                for other in range(one + 1, size):
                    first, second = a[:, :, one], a[:, :, other]
                    product = _total(first * second, 1)
                    squares = _total(first * first, 1), _total(second * second, 1)
                    still = ~(abs(product) > _NEGLIGIBLE * np.sqrt(squares[0]) * np.sqrt(squares[1]) + smallest)
                    if still.all():
                        continue
                    done = False
                    cosine, sine = _rotation(*squares, product, still)
                    _turned(a, one, other, cosine, sine)
                    _turned(turns, one, other, cosine, sine)
            if done:
                break
    return a, turns


def _completed(columns: Array, known: Array) -> Array:
    """Square matrices whose columns are orthonormal: those that are known, and others in the places of the rest."""
    count, size, _ = columns.shape
    columns = np.where(known[:, None], columns, 0)
    for place in range(size):
        missing = ~known[:, place]
        if not missing.any():
            continue
        # The unit vector of which the columns there are hold least.
        held = _total(columns * columns, 2)
        vector = np.zeros((count, size))
        vector[np.arange(count), held.argmin(1)] = 1
        for _ in range(2):
            vector = vector - _total(columns * _total(columns * vector[:, :, None], 1)[:, None], 2)
        vector = vector / np.sqrt(_total(vector * vector, 1))[:, None]
        columns[:, :, place] = np.where(missing[:, None], vector, columns[:, :, place])
    return columns


def svd(matrices: Array, full_matrices: bool = True) -> tuple[Array, Array, Array]:
    """U, the singular values, the largest first, and V^T, by rotations of R's columns."""
    rows, columns = matrices.shape[-2:]
    if rows < columns:
        v, values, u = svd(matrices.swapaxes(-1, -2), full_matrices)
        return u.swapaxes(-1, -2), values, v.swapaxes(-1, -2)
    a, factors = _reflected(_batch(matrices))
    basis = _orthonormal(a, factors, rows if full_matrices else columns)
    turned, turns = _orthogonal_columns(np.triu(a[:, :columns]))
    values = np.sqrt(_total(turned * turned, 1))
    order = (-values).argsort(1, kind="stable")
    values = np.take_along_axis(values, order, 1)
    turned, turns = (np.take_along_axis(each, order[:, None], 2) for each in (turned, turns))
    known = values > _NEGLIGIBLE * columns * values[:, :1]
    left = _completed(turned / np.where(known, values, 1)[:, None], known)
    basis[:, :, :columns] = _columns_times(basis[:, :, :columns].copy(), left)
    found = _like(basis, matrices, rows, basis.shape[2]), _like(values, matrices, columns)
    return *found, _like(turns.swapaxes(1, 2), matrices, columns, columns)


def svdvals(matrices: Array) -> Array:
    """The singular values, the largest first."""
    return svd(matrices, False)[1]


def _left_to_others(*arguments: Any) -> None:
    """For what is made of these functions elsewhere."""


FUNCTIONS: dict[str, Callable[..., Any]] = {
    each.__name__.lstrip("_"): each
    for each in (solve, inv, triangle_solved, det, slogdet, cholesky, qr, eigh, eigvalsh, svd, svdvals)
} | dict.fromkeys(
    (
        *("factored", "solved_by_factors", "inverted", "positive_factored", "orthonormal", "symmetric_factored"),
        "least_squares",
    ),
    _left_to_others,
)
"""By the names of the functions in `lapack.py` those that are kept."""
