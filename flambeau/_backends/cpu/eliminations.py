"""Routines of the linear algebra library that NumPy brings along and has no functions for: LU, triangular systems.

They are called by their addresses, matrix by matrix. The library counts columns first: a row-major matrix is its
transpose to it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .blas import openblas

Array = Any

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
_NAMES = ("scipy_{}_64_", "{}_64_")
"""Libraries whose integers have 64 bits say so in the names of their routines; others are not asked."""
_WORTH_A_CALL = 16
"""Smaller matrices are quicker by functions of whole batches, if there are several."""


@functools.cache
def _routine(name: str) -> Callable[..., Any] | None:
    library = openblas()
    for pattern in _NAMES if library is not None else ():
        found: Any = getattr(library, pattern.format(name), None)
        if found is not None:
            found.restype = None
            routine: Callable[..., Any] = found
            return routine
    return None


def _routine_for(name: str, matrices: Array) -> Callable[..., Any] | None:
    """The routine for these matrices; None: there is none, or it does not pay."""
    letter = _LETTERS.get(matrices.dtype.char)
    if letter is None or not matrices.size or not matrices.dtype.isnative:
        return None
    is_one = matrices.size == matrices.shape[-1] * matrices.shape[-2]
    return _routine(letter + name) if is_one or min(matrices.shape[-2:]) >= _WORTH_A_CALL else None


def _number(value: int) -> Any:
    return ctypes.byref(ctypes.c_int64(value))


def _address(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def factored(matrices: Array) -> tuple[Array, Array] | None:
    """L and U of matrices in one array, column by column in memory, and the swaps of rows, counted from 1."""
    run = _routine_for("getrf", matrices)
    if run is None:
        return None
    *batch, rows, columns = matrices.shape
    packed = np.array(matrices.swapaxes(-1, -2), order="C").reshape(-1, columns, rows)
    swaps = np.empty((len(packed), min(rows, columns)), np.int64)
    info = ctypes.c_int64()
    sizes = _number(rows), _number(columns)
    for matrix, made in zip(packed, swaps, strict=True):
        run(*sizes, _address(matrix), sizes[0], _address(made), ctypes.byref(info))
    return packed.reshape(*batch, columns, rows).swapaxes(-1, -2), swaps.reshape(*batch, -1).astype(np.int32)


def triangle_solved(matrices: Array, right: Array, upper: bool, unitriangular: bool) -> Array | None:
    """The X of A X = B, where only one triangle of A is looked at; None too if A has a zero on its diagonal."""
    run = _routine_for("trsm", matrices)
    if run is None or right.dtype is not matrices.dtype or not right.size:
        return None
    if not unitriangular and not np.diagonal(matrices, axis1=-2, axis2=-1).all():
        return None
    batch = np.broadcast_shapes(matrices.shape[:-2], right.shape[:-2])
    size, columns = right.shape[-2:]
    solution = np.array(np.broadcast_to(right, (*batch, size, columns)), order="C")
    spread = np.broadcast_to(matrices, (*batch, size, size))
    one = np.ones(1, right.dtype)
    for index in np.ndindex(*batch):
        matrix, turned = _readable(spread[index])
        # X' A' = B', as the library reads row-major matrices
        letters = "R", "UL"[upper != turned], "T" if turned else "N", "U" if unitriangular else "N"
        step = max(matrix.strides) // matrix.itemsize
        run(
            *(ctypes.c_char_p(each.encode()) for each in letters), _number(columns), _number(size), _address(one),
            _address(matrix), _number(max(step, size)), _address(solution[index]), _number(columns),
            *(ctypes.c_size_t(1) for _ in letters),
        )  # fmt: skip
    return solution


def _readable(matrix: Array) -> tuple[Array, bool]:
    """A matrix in rows, or in columns, and whether it is the latter; a copy of one that is neither."""
    item = matrix.itemsize
    for turned in (False, True):
        far, near = matrix.strides[::-1] if turned else matrix.strides
        if near == item and far >= item * matrix.shape[0] and far % item == 0:
            return matrix, turned
    return np.ascontiguousarray(matrix), False
