"""Fourier transforms along the last dimensions, and of complex numbers along any one: of products of 2, 3 and 5."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...._codegen.elements.transpose import transposed_copy
from ...._codegen.rows.fourier import COMPLEX, HALF, REAL, fourier_columns, fourier_rows, radices
from ...._core.arrays.quick import dim_moved

Array = Any
Dim = tuple[int, ...]
Transform = Callable[[Array, Array | None], Array | None]
"""Of an array, into another one if there is one; None: there is no kernel."""

_SINGLE, _DOUBLE = "float32", "float64"
_REAL_TYPES: dict[str, np.dtype[Any]] = {_SINGLE: np.dtype(np.float32), _DOUBLE: np.dtype(np.float64)}
_COMPLEX_TYPES: dict[str, np.dtype[Any]] = {_SINGLE: np.dtype(np.complex64), _DOUBLE: np.dtype(np.complex128)}
_REAL = {dtype: name for name, dtype in _REAL_TYPES.items()}
_COMPLEX = {dtype: name for name, dtype in _COMPLEX_TYPES.items()}
_LANES = {_SINGLE: 16, _DOUBLE: 8}
_AS_DOUBLE = _REAL_TYPES[_DOUBLE]
_FEW_ROWS = 4
"""Fewer rows are transformed one by one."""
_MOST_POINTS, _MOST_BYTES_OF_ONE = 1 << 16, 1 << 16
"""Of more points the passes would leave the cache; of single rows with more bytes NumPy's are as quick."""
_CACHE = 1 << 20
"""Bytes that the passes may go through; of many points fewer rows lie side by side."""


@functools.lru_cache(1024)
def _lanes(name: str, points: int, rows: int) -> int:
    """How many rows are transformed together."""
    lanes = 1 if rows < _FEW_ROWS else _LANES[name]
    while lanes > 4 and 4 * points * lanes * _REAL_TYPES[name].itemsize > _CACHE:
        lanes //= 2
    return lanes


@functools.lru_cache(256)
def _plan(points: int, name: str) -> tuple[Array, Array] | None:
    """The factors of a number of points, and the roots of unity for each pass; None: it has others than there are."""
    factors: list[int] = []
    rest = points
    for radix in sorted(radices(), reverse=True):
        while rest % radix == 0:
            factors.append(radix)
            rest //= radix
    if rest != 1:
        return None
    length = points
    turns: list[Array] = [np.ones(0)]  # a single point has none
    for radix in factors:
        joined = length // radix
        steps = np.outer(np.arange(joined), np.arange(1, radix)) % length
        turns.append(np.exp(-2j * np.pi * steps / length).ravel())
        length = joined
    return np.array(factors, np.int64), np.concatenate(turns).astype(_COMPLEX_TYPES[name])


@functools.lru_cache(256)
def _halves(points: int, name: str) -> Array:
    """The roots of unity that tell the spectra of even and odd places apart."""
    return np.exp(-2j * np.pi * np.arange(points // 4 + 1) / points).astype(_COMPLEX_TYPES[name])


def _transformed(
    x: Array,
    name: str | None,
    given: str,
    points: int,
    kept: int,
    normalization: int,
    backward: bool,
    into: Array | None = None,
) -> Array | None:
    """`kept` numbers of the transform of each row: real ones of half a spectrum, else complex ones."""
    if name is None or not x.flags.c_contiguous or not x.size:
        return None
    read = x.shape[-1]
    rows = x.size // read
    ready = _ready(name, given, points, rows < _FEW_ROWS, normalization)
    if ready is None:
        return None
    kernel, arrays, together, passes, scale = ready
    dtype = (_REAL_TYPES if given == HALF else _COMPLEX_TYPES)[name]
    out = np.empty((*x.shape[:-1], kept), dtype) if into is None else into
    read, written = read * (1 if given == REAL else 2), kept * (1 if given == HALF else 2)
    return kernel(out, x, *arrays, rows, together, passes, read, written, int(backward), scale)


@functools.lru_cache(1024)
def _ready(name: str, given: str, points: int, are_few: bool, normalization: int) -> tuple[Any, ...] | None:
    """The kernel for so many points, its arrays, how many points it takes for one, its passes, and the scale."""
    in_pairs = given != COMPLEX and points % 2 == 0
    together = points // 2 if in_pairs else points
    most = _MOST_BYTES_OF_ONE // _COMPLEX_TYPES[name].itemsize if are_few else _MOST_POINTS
    plan = _plan(together, name) if 0 < together <= most else None
    if plan is None:
        return None
    factors, turns = plan
    halves = _halves(points, name) if in_pairs else turns
    kernel = fourier_rows(name, given, in_pairs, _lanes(name, together, 1 if are_few else _FEW_ROWS))
    return kernel, (factors, turns, halves), together, len(factors), _scale(points, normalization)


def _are_last(x: Array, dim: Dim) -> bool:
    """Whether these are the last dimensions of an array without gaps, in whatever order, each with a plan."""
    return (
        x.flags.c_contiguous
        and sorted(dim) == list(range(x.ndim - len(dim), x.ndim))
        and all(0 < x.shape[each] <= _MOST_POINTS and _plan(x.shape[each], _SINGLE) for each in dim[:-1])
    )


def _along(x: Array, dims: Dim, normalization: int, backward: bool, into: Array | None = None) -> Array | None:
    """Complex numbers transformed along dimensions, one after another; where few lie beside each other, turned."""
    done = x
    for dim in dims:
        if done is None:
            return None
        goal = into if dim == dims[-1] else None
        points = x.shape[dim]
        if dim == x.ndim - 1:
            done = _transformed(done, _COMPLEX.get(x.dtype), COMPLEX, points, points, normalization, backward, goal)
            continue
        slabs = done.reshape(math.prod(x.shape[:dim]), points, -1)
        columns = _columns(slabs, points, normalization, backward, goal)
        if columns is not None:
            done = columns.reshape(x.shape)
            continue
        lines = _turned(slabs)
        lines = _transformed(lines, _COMPLEX.get(x.dtype), COMPLEX, points, points, normalization, backward)
        done = None if lines is None else _turned(lines, goal).reshape(x.shape)
    return done


def _part_by_part(x: Array, dim: Dim, shape: Dim, dtype: Any, transform: Transform) -> Array | None:
    """Transform parts that fit into the cache: what one dimension leaves there, the next one finds.

    `dim` are the last dimensions, for `transform` counted from the end of a part, which has one before them.
    """
    first = min(dim)
    count = math.prod(x.shape[:first])
    together = max(1, _CACHE // 2 * count // x.nbytes) if x.size else 0
    if len(dim) == 1 or not 0 < together < count:
        return transform(x, None)
    parts, out = x.reshape(count, *x.shape[first:]), np.empty(shape, dtype)
    places = out.reshape(count, *shape[first:])
    for start in range(0, count, together):
        part = slice(start, start + together)
        if transform(parts[part], places[part]) is None:
            return None
    return out


def _along_another(x: Array, dim: int, normalization: int, backward: bool) -> Array | None:
    """Complex numbers transformed along a dimension that is not the last, and becomes that in memory, as in PyTorch."""
    points = x.shape[dim]
    lead, rest = x.shape[:dim], x.shape[dim + 1 :]
    if not x.size:
        return None
    lines = _turned(x.reshape(math.prod(lead), points, -1))
    done = _transformed(lines, _COMPLEX.get(x.dtype), COMPLEX, points, points, normalization, backward)
    return None if done is None else dim_moved(done.reshape(*lead, *rest, points), -1, dim)


def _columns(slabs: Array, points: int, normalization: int, backward: bool, into: Array | None = None) -> Array | None:
    """Complex numbers transformed along the middle one of three dimensions; None: the last one is too short."""
    name = _COMPLEX.get(slabs.dtype)
    outer, _, inner = slabs.shape
    lanes = 0 if name is None else _lanes(name, points, _LANES[name])
    plan = None if name is None or inner < lanes else _plan(points, name)
    if name is None or plan is None:
        return None
    kernel = fourier_columns(name, lanes)
    numbers = outer, points, inner, len(plan[0]), int(backward), _scale(points, normalization)
    return kernel(np.empty(slabs.shape, slabs.dtype) if into is None else into, slabs, *plan, *numbers)


def _scale(points: int, normalization: int) -> float:
    return 1.0 if not normalization else points**-0.5 if normalization == 1 else 1.0 / points


def _turned(matrices: Array, into: Array | None = None) -> Array:
    """A copy of matrices whose rows are columns."""
    count, rows, columns = matrices.shape
    shape = count, columns, rows
    out = np.empty(shape, matrices.dtype) if into is None else into.reshape(shape)
    if matrices.itemsize != _AS_DOUBLE.itemsize:
        out[...] = matrices.swapaxes(1, 2)
        return out
    pairs = out.view(_AS_DOUBLE), matrices.view(_AS_DOUBLE)  # two floats are moved as one number of their size
    transposed_copy(_DOUBLE)(*pairs, count, columns, rows, rows * columns, columns)
    return out


def complex_to_complex(x: Array, dim: Dim, normalization: int, forward: bool) -> Array | None:
    if len(dim) == 1 and x.flags.c_contiguous:
        if dim[0] != x.ndim - 1:
            return _along_another(x, dim[0], normalization, not forward)
        points = x.shape[-1]
        return _transformed(x, _COMPLEX.get(x.dtype), COMPLEX, points, points, normalization, not forward)
    if not dim or not _are_last(x, dim):
        return None

    def transform(part: Array, into: Array | None) -> Array | None:
        return _along(part, _from_the_end(part, x, sorted(dim, reverse=True)), normalization, not forward, into)

    return _part_by_part(x, dim, x.shape, x.dtype, transform)


def real_to_complex(x: Array, dim: Dim, normalization: int, onesided: bool) -> Array | None:
    name = _REAL.get(x.dtype)
    if name is None or dim[-1] != x.ndim - 1:
        return None
    points = x.shape[-1]
    kept = points // 2 + 1 if onesided else points
    if len(dim) == 1:
        return _transformed(x, name, REAL, points, kept, normalization, False)
    if not _are_last(x, dim):
        return None

    def transform(part: Array, into: Array | None) -> Array | None:
        others = _from_the_end(part, x, dim[:-1])
        made = _transformed(part, name, REAL, points, kept, normalization, False, None if others else into)
        return made if made is None else _along(made, others, normalization, False, into)

    return _part_by_part(x, dim, (*x.shape[:-1], kept), _COMPLEX_TYPES[name], transform)


def complex_to_real(x: Array, dim: Dim, normalization: int, last_dim_size: int) -> Array | None:
    name, points = _COMPLEX.get(x.dtype), last_dim_size
    if name is None or dim[-1] != x.ndim - 1:
        return None
    if len(dim) == 1:
        return _transformed(x, name, HALF, points, points, normalization, True)
    if not _are_last(x, dim):
        return None

    def transform(part: Array, into: Array | None) -> Array | None:
        made = _along(part, _from_the_end(part, x, dim[:-1]), normalization, True)
        return made if made is None else _transformed(made, name, HALF, points, points, normalization, True, into)

    return _part_by_part(x, dim, (*x.shape[:-1], points), _REAL_TYPES[name], transform)


def _from_the_end(part: Array, x: Array, dims: Iterable[int]) -> Dim:
    """Dimensions of `x` as those of one of its parts."""
    return tuple([each - x.ndim + part.ndim for each in dims])
