"""Fourier transforms along the last dimension, of sizes that are products of 2, 3 and 5."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..._codegen.rows.fourier import COMPLEX, HALF, REAL, TRANSFORMS, fourier_rows

Array = Any
Dim = tuple[int, ...]

_SINGLE, _DOUBLE = "float32", "float64"
_REAL_TYPES: dict[str, np.dtype[Any]] = {_SINGLE: np.dtype(np.float32), _DOUBLE: np.dtype(np.float64)}
_COMPLEX_TYPES: dict[str, np.dtype[Any]] = {_SINGLE: np.dtype(np.complex64), _DOUBLE: np.dtype(np.complex128)}
_REAL = {dtype: name for name, dtype in _REAL_TYPES.items()}
_COMPLEX = {dtype: name for name, dtype in _COMPLEX_TYPES.items()}
_LANES = {_SINGLE: 16, _DOUBLE: 8}
_FEW_ROWS = 4
"""Fewer rows are transformed one by one."""
_MOST_POINTS = 4096
"""Of more points the passes would leave the cache."""


@functools.lru_cache(256)
def _plan(points: int, name: str) -> tuple[Array, Array] | None:
    """The factors of a number of points, and the roots of unity for each pass; None: it has others than there are."""
    factors: list[int] = []
    rest = points
    for radix in sorted(TRANSFORMS, reverse=True):
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


def _transformed(
    x: Array, name: str | None, given: str, dim: Dim, points: int, kept: int, normalization: int, backward: bool
) -> Array | None:
    """`kept` numbers of the transform of each row: real ones of half a spectrum, else complex ones."""
    if name is None or len(dim) != 1 or dim[0] != x.ndim - 1 or not x.flags.c_contiguous:
        return None
    plan = _plan(points, name) if 0 < points <= _MOST_POINTS and x.size else None
    if plan is None:
        return None
    factors, turns = plan
    read = x.shape[-1]
    rows = x.size // read
    out = np.empty((*x.shape[:-1], kept), (_REAL_TYPES if given == HALF else _COMPLEX_TYPES)[name])
    scale = 1.0 if not normalization else points**-0.5 if normalization == 1 else 1.0 / points
    kernel = fourier_rows(name, given, 1 if rows < _FEW_ROWS else _LANES[name])
    read, written = read * (1 if given == REAL else 2), kept * (1 if given == HALF else 2)
    return kernel(out, x, factors, turns, rows, points, len(factors), read, written, int(backward), scale)


def complex_to_complex(x: Array, dim: Dim, normalization: int, forward: bool) -> Array | None:
    if not dim:
        return None
    points = x.shape[dim[-1]]
    return _transformed(x, _COMPLEX.get(x.dtype), COMPLEX, dim, points, points, normalization, not forward)


def real_to_complex(x: Array, dim: Dim, normalization: int, onesided: bool) -> Array | None:
    points = x.shape[dim[-1]]
    kept = points // 2 + 1 if onesided else points
    return _transformed(x, _REAL.get(x.dtype), REAL, dim, points, kept, normalization, False)


def complex_to_real(x: Array, dim: Dim, normalization: int, last_dim_size: int) -> Array | None:
    return _transformed(x, _COMPLEX.get(x.dtype), HALF, dim, last_dim_size, last_dim_size, normalization, True)
