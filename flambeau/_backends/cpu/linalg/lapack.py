"""Routines of the linear algebra library that NumPy brings along and has no functions for, or only for float64.

They are called by their addresses, matrix by matrix. The library counts columns first: a row-major matrix is its
transpose to it. What it leaves in place of the matrices is returned as it is, column by column in memory.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...._core.storage import address_of
from .blas import openblas

Array = Any

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
_COMPLEX = {"orgqr": "ungqr"}
"""What complex routines are called that have another name."""
_NAMES = ("scipy_{}_64_", "{}_64_")
"""Libraries whose integers have 64 bits say so in the names of their routines; others are not asked."""
_WORTH_A_CALL = 16
"""Smaller matrices are quicker by functions of whole batches, if there are several and such functions."""
_SMALL = 64 * 64
"""So many elements at most has a matrix for which it is remembered where its lower triangle is."""
_KEPT = 64
_WANTED: dict[tuple[Any, ...], int] = {}
"""By routine and sizes the elements of working memory: to ask takes as long as to factor a small matrix."""


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


def _routine_for(name: str, matrices: Array, smallest: int = _WORTH_A_CALL) -> Callable[..., Any] | None:
    """The routine for these matrices; None: there is none, or it does not pay."""
    letter = _LETTERS.get(matrices.dtype.char)
    if letter is None or not matrices.size or not matrices.dtype.isnative:
        return None
    if min(matrices.shape[-2:]) < smallest and matrices.size != matrices.shape[-1] * matrices.shape[-2]:
        return None
    return _routine(letter + (_COMPLEX.get(name, name) if matrices.dtype.kind == "c" else name))


def _number(value: int) -> Any:
    """A number that a routine may write to."""
    return ctypes.byref(ctypes.c_int64(value))


_size = functools.lru_cache(1024)(_number)
"""A number that is only read."""


def _letters(text: str) -> list[Any]:
    return [ctypes.c_char_p(each.encode()) for each in text]


def _lengths(text: str) -> list[Any]:
    """The routines want the lengths of their letters too, after all else."""
    return [ctypes.c_size_t(1) for _ in text]


def _address(array: Array) -> Any:
    flags = array.flags
    if flags.writeable and flags.c_contiguous and array.size:
        return ctypes.byref(ctypes.c_char.from_buffer(array))  # a third of the time that NumPy's own way takes
    return ctypes.c_void_p(address_of(array))


def _addresses(stack: Array) -> list[Any]:
    """Where the parts of a contiguous array begin."""
    if len(stack) == 1:
        return [_address(stack)]
    begin, step = address_of(stack), stack.strides[0]
    return [ctypes.c_void_p(begin + part * step) for part in range(len(stack))]


def _by_columns(matrices: Array) -> Array:
    """A copy in one line of matrices, each with its columns one after the other: its transpose in rows."""
    *_, rows, columns = matrices.shape
    return np.array(matrices.swapaxes(-1, -2), order="C").reshape(-1, columns, rows)


def _on_each(run: Callable[..., Any], arguments: Callable[..., tuple[Any, ...]], *stacks: Array) -> None:
    """Call a routine for each matrix, with `arguments` of its places in the stacks, of working memory and its size."""
    places = list(zip(*map(_addresses, stacks), strict=True))
    key = run.__name__, *[each.shape[1:] for each in stacks]
    wanted = _WANTED.get(key)
    if wanted is None:
        answer = np.empty(1, stacks[0].dtype)
        run(*arguments(*places[0], _address(answer), _size(-1)))  # it says how much it wants
        if len(_WANTED) >= _KEPT:
            _WANTED.clear()
        wanted = _WANTED[key] = max(1, int(answer[0].real))
    memory = np.empty(wanted, stacks[0].dtype)
    room = _address(memory), _size(wanted)
    for place in places:
        run(*arguments(*place, *room))


@functools.lru_cache(_KEPT)
def _small_lower(rows: int, columns: int) -> Array:
    """Where the lower triangle is, by columns."""
    return np.ascontiguousarray(np.tri(rows, columns, -1, bool).T)


def _upper(matrices: Array) -> Array:
    """The upper triangles of matrices, in new arrays, by columns."""
    *_, rows, columns = matrices.shape
    if rows * columns > _SMALL:
        return np.triu(matrices)
    turned = np.array(matrices.swapaxes(-1, -2), order="C")
    np.copyto(turned, 0, where=_small_lower(rows, columns))
    return turned.swapaxes(-1, -2)


def factored(matrices: Array) -> tuple[Array, Array] | None:
    """L and U of matrices in one array, and the swaps of rows, counted from 1."""
    run = _routine_for("getrf", matrices)
    if run is None:
        return None
    *batch, rows, columns = matrices.shape
    packed = _by_columns(matrices)
    swaps = np.empty((len(packed), min(rows, columns)), np.int64)
    info = _number(0)
    sizes = _size(rows), _size(columns)
    for matrix, made in zip(_addresses(packed), _addresses(swaps), strict=True):
        run(*sizes, matrix, sizes[0], made, info)
    return packed.reshape(*batch, columns, rows).swapaxes(-1, -2), swaps.reshape(*batch, -1).astype(np.int32)


def are_factored(matrices: Array) -> bool:
    """Whether `factored` and `solved_by_factors` do such matrices."""
    return all(_routine_for(name, matrices) is not None for name in ("getrf", "getrs"))


def solved_by_factors(packed: Array, swaps: Array, right: Array, adjoint: bool) -> Array | None:
    """The X of A X = B, or of A^H X = B, from what `factored` gives for A; its columns lie one after the other."""
    run = _routine_for("getrs", packed)
    batch = packed.shape[:-2]
    if run is None or right.dtype != packed.dtype or not right.size or right.shape[:-2] != batch:
        return None
    size, columns = right.shape[-2:]
    factors = np.ascontiguousarray(packed.swapaxes(-1, -2)).reshape(-1, size, size)
    solution, rows = _by_columns(right), swaps.astype(np.int64).reshape(-1, size)
    letter = "N" if not adjoint else "C" if packed.dtype.kind == "c" else "T"
    order, count, info = _size(size), _size(columns), _number(0)
    for matrix, made, answer in zip(*map(_addresses, (factors, rows, solution)), strict=True):
        run(*_letters(letter), order, count, matrix, order, made, answer, order, info, *_lengths(letter))
    return solution.reshape(*batch, columns, size).swapaxes(-1, -2)


def inverted(matrices: Array) -> tuple[Array, Array] | None:
    """The inverses of matrices, and codes: 0, or the number of the pivot that is zero; there the result is infinite."""
    factor, invert = (_routine_for(name, matrices) for name in ("getrf", "getri"))
    if factor is None or invert is None:
        return None
    *batch, size, _ = matrices.shape
    packed, order, info = _by_columns(matrices), _size(size), _number(0)
    swaps, codes = np.empty((len(packed), size), np.int64), np.empty((len(packed), 1), np.int64)
    for matrix, made, code in zip(*map(_addresses, (packed, swaps, codes)), strict=True):
        factor(order, order, matrix, order, made, code)
    _on_each(invert, lambda matrix, made, *memory: (order, matrix, order, made, *memory, info), packed, swaps)
    codes = codes.reshape(batch).astype(np.int32)
    if codes.any():
        packed[codes.reshape(-1) != 0] = np.inf
    return packed.reshape(*batch, size, size).swapaxes(-1, -2), codes


def positive_factored(matrices: Array) -> Array | None:
    """The L of A = L L^H, of which the lower triangle is looked at; None too if one A is not positive-definite."""
    run = _routine_for("potrf", matrices)
    if run is None:
        return None
    *_, size, _ = matrices.shape
    packed, order, code = _by_columns(matrices), _size(size), ctypes.c_int64()
    for matrix in _addresses(packed):
        run(*_letters("L"), order, matrix, order, ctypes.byref(code), *_lengths("L"))
        if code.value:
            return None
    return np.triu(packed).reshape(matrices.shape).swapaxes(-1, -2)


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
        letters = "R" + "UL"[upper != turned] + ("T" if turned else "N") + ("U" if unitriangular else "N")
        step = max(matrix.strides) // matrix.itemsize
        run(
            *_letters(letters), _size(columns), _size(size), _address(one), _address(matrix),
            _size(max(step, size)), _address(solution[index]), _size(columns), *_lengths(letters),
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


def symmetric_factored(matrices: Array, hermitian: bool) -> tuple[Array, Array, Array] | None:
    """L and D of L D L^T, or of L D L^H, in one array, the swaps, and codes: 0, or where the first zero in D is."""
    run = _routine_for("hetrf" if hermitian else "sytrf", matrices, 1)
    if run is None:
        return None
    *batch, size, _ = matrices.shape
    packed = _by_columns(matrices)
    swaps, codes = np.empty((len(packed), size), np.int64), np.empty((len(packed), 1), np.int64)
    triangle, length, order = _letters("L"), _lengths("L"), _size(size)
    _on_each(
        run,
        lambda matrix, made, code, *memory: (*triangle, order, matrix, order, made, *memory, code, *length),
        packed, swaps, codes,
    )  # fmt: skip
    lower = np.triu(packed).reshape(matrices.shape).swapaxes(-1, -2)
    return lower, swaps.reshape(*batch, size).astype(np.int32), codes.reshape(batch).astype(np.int32)


def qr(matrices: Array, mode: str) -> Any:
    """Q and R, R alone, or the reflectors under R, turned, and their factors: what NumPy's function gives."""
    found = _reflectors(matrices)
    if found is None or mode == "raw":
        return found and (found[0].swapaxes(-1, -2), found[1])
    raw, factors = found
    *batch, rows, columns = matrices.shape
    wanted = rows if mode == "complete" else min(rows, columns)
    upper = _upper(raw[..., :wanted, :])
    if mode == "r":
        return upper
    if wanted > columns:
        raw = np.concatenate([raw, np.empty((*batch, rows, wanted - columns), raw.dtype)], -1)
    return orthonormal(raw[..., :wanted], factors), upper


def _reflectors(matrices: Array) -> tuple[Array, Array] | None:
    run = _routine_for("geqrf", matrices)
    if run is None:
        return None
    *batch, rows, columns = matrices.shape
    packed = _by_columns(matrices)
    factors = np.empty((len(packed), min(rows, columns)), packed.dtype)
    sizes, info = (_size(rows), _size(columns)), _number(0)
    _on_each(run, lambda matrix, made, *memory: (*sizes, matrix, sizes[0], made, *memory, info), packed, factors)
    return packed.reshape(*batch, columns, rows).swapaxes(-1, -2), factors.reshape(*batch, -1)


def orthonormal(raw: Array, factors: Array) -> Array | None:
    """As many columns of the product of reflectors as `raw` has."""
    run = _routine_for("orgqr", raw)
    if run is None or not factors.size:
        return None
    *batch, rows, columns = raw.shape
    packed, count = _by_columns(raw), factors.shape[-1]
    factors = np.ascontiguousarray(factors).reshape(-1, count)
    sizes, info = (_size(rows), _size(columns), _size(count)), _number(0)
    _on_each(run, lambda matrix, each, *memory: (*sizes, matrix, sizes[0], each, *memory, info), packed, factors)
    return packed.reshape(*batch, columns, rows).swapaxes(-1, -2)


def least_squares(matrices: Array, right: Array, tolerance: float) -> tuple[Array, Array] | None:
    """The shortest X that make A X - B shortest, above what is left of B, and the ranks of A.

    A condition number above 1 / `tolerance` counts as infinite.
    """
    run = _routine_for("gelsy", matrices, 1)
    if run is None or right.dtype is not matrices.dtype or not right.size:
        return None
    (rows, columns), count = matrices.shape[-2:], right.shape[-1]
    batch = np.broadcast_shapes(matrices.shape[:-2], right.shape[:-2])
    room = np.zeros((*batch, count, max(rows, columns)), right.dtype)
    room[..., :rows] = right.swapaxes(-1, -2)
    packed = _by_columns(np.broadcast_to(matrices, (*batch, rows, columns)))
    places = len(packed)
    orders = np.zeros((places, columns), np.int64)  # zero: any column may go first
    ranks = np.empty((places, 1), np.int64)
    limit = np.array([tolerance], packed.real.dtype)
    # complex routines have a second working memory, for whose size they are not asked
    second = np.empty(2 * columns, limit.dtype)
    rest = ([_address(second)] if packed.dtype.kind == "c" else []) + [_number(0)]
    sizes, tall = (_size(rows), _size(columns), _size(count)), _size(room.shape[-1])
    _on_each(
        run,
        lambda matrix, solution, order, rank, *memory: (
            *sizes, matrix, sizes[0], solution, tall, order, _address(limit), rank, *memory, *rest
        ),
        packed, room.reshape(places, -1), orders, ranks,
    )  # fmt: skip
    return room.swapaxes(-1, -2), ranks.reshape(batch)
