"""A = L D L^T, or L D L^H, for matrices that are symmetric or Hermitian but not positive-definite."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._backends import lapack
from ..._core.backend import read
from ..._core.dtype import INTEGER, LEGACY_NAMES
from ..._core.tensor import Tensor
from ..._dispatch.axes import MATRICES, Last
from ..._dispatch.dispatch import Array, primitive, several
from ..._dispatch.gradients.undifferentiable import no_derivative
from ..._dispatch.on_host import on_host
from ..._dispatch.public.registry import public
from ..._dispatch.public.return_types import named, return_type
from .checks import batch_shape, check_codes, check_floating, check_pivots, check_square, column_major
from .systems import solve_triangle

LDL_FACTOR = return_type("linalg_ldl_factor", ("LD", "pivots"))
LDL_FACTOR_EX = return_type("linalg_ldl_factor_ex", ("LD", "pivots", "info"))

_GROWTH = (1 + math.sqrt(17)) / 8
"""Bunch and Kaufman's bound: the elements of the remaining matrix grow least with it."""


def _size(values: Any) -> Any:
    """What LAPACK compares to find a pivot: for complex numbers the sum of the parts' sizes."""
    return np.abs(values.real) + np.abs(values.imag)


def _pivot(rest: Array, on_diagonal: Array) -> tuple[int, int] | None:
    """Which row of `rest` comes first, and whether 1 or 2 columns are eliminated; None where the column is zero."""
    head = on_diagonal[0]
    column = _size(rest[1:, 0])
    largest = column.max(initial=0)
    if max(head, largest) == 0 or np.isnan(head):
        return None
    if head >= _GROWTH * largest:
        return 0, 1
    chosen = 1 + int(column.argmax())
    row = _size(rest[chosen])
    row[chosen] = 0
    if read(head >= _GROWTH * largest * (largest / row.max())):
        return 0, 1
    return chosen, 1 if on_diagonal[chosen] >= _GROWTH * row.max() else 2


def _eliminate(rest: Array, columns: Array, block: Array, hermitian: bool) -> Array:
    """The columns of L for a block of D; `rest` loses its part. Each step is rounded as LAPACK's is."""
    if len(block) == 1:
        scale = 1 / (block[0, 0].real if hermitian else block[0, 0])
        rest -= columns * (scale * (columns.conj() if hermitian else columns).T)
        return columns * scale
    corner = block[1, 0]
    size = np.hypot(corner.real, corner.imag) if hermitian else corner
    first, second = block[1, 1] / size, block[0, 0] / size
    if hermitian:
        first, second = first.real, second.real
    turn = corner / size
    scale = 1 / (first * second - 1) / size
    one, two = columns.T
    factors = np.stack([scale * (first * one - turn * two), scale * (second * two - np.conj(turn) * one)], -1)
    rest -= columns @ (factors.conj() if hermitian else factors).T
    return factors


def _factor(matrix: Array, hermitian: bool) -> tuple[Array, Array, int]:
    """L below the blocks of D, LAPACK's pivots, and the number of the first column that has none."""
    count = len(matrix)
    packed = np.tril(matrix)
    below = np.tril(matrix, -1).T
    packed += below.conj() if hermitian else below
    if hermitian:
        packed[np.arange(count), np.arange(count)] = packed.diagonal().real
    pivots = np.arange(1, count + 1, dtype=np.int32)
    failed = step = 0
    while step < count:
        rest = packed[step:, step:]
        found = _pivot(rest, np.abs(rest.diagonal().real) if hermitian else _size(rest.diagonal()))
        if found is None:
            failed = failed or step + 1
            step += 1
            continue
        chosen, width = found
        first = width - 1  # where the chosen row goes
        if chosen != first:
            rest[[first, chosen]] = rest[[chosen, first]]
            rest[:, [first, chosen]] = rest[:, [chosen, first]]
        columns = rest[width:, :width].copy()
        if len(columns):
            rest[width:, :width] = _eliminate(rest[width:, width:], columns, rest[:width, :width], hermitian)
        pivots[step : step + width] = step + chosen + 1 if width == 1 else -(step + chosen + 1)
        step += width
    return np.tril(packed), pivots, failed


def _factor_shapes(self: Array, hermitian: bool) -> Any:
    pivots = np.empty_like(self, np.int32, shape=self.shape[:-1])
    return column_major(self), pivots, np.empty_like(self, np.int32, shape=self.shape[:-2])


@several(
    "NotImplemented",
    axes=MATRICES,
    self=no_derivative("linalg_ldl_factor_ex"),
    results=("LD", "pivots", "info"),
    shape=_factor_shapes,
)
@on_host
def _ldl_factor_ex(self: Array, hermitian: bool) -> Any:
    *batch, size, _ = self.shape
    hermitian = hermitian and self.dtype.kind == "c"
    found = lapack.symmetric_factored(self, hermitian)
    if found is not None:
        return found
    packed = np.empty_like(self, order="C", subok=False)
    pivots, info = np.empty((*batch, size), np.int32), np.empty(batch, np.int32)
    for place in np.ndindex(*batch):
        packed[place], pivots[place], info[place] = _factor(self[place], hermitian)
    return column_major(packed), pivots, info


def _factored(name: str, A: Tensor, hermitian: bool, check_errors: bool) -> Any:
    check_square("torch.linalg.ldl_factor_ex", A)
    check_floating("torch.linalg.ldl_factor_ex", A, "ldl_factor_kernel_cpu")
    packed, pivots, info = _ldl_factor_ex(A, hermitian)
    if check_errors:
        check_codes(info, f"torch.linalg.{name}")
    return packed, pivots, info


@public("linalg.ldl_factor_ex", function=False, method=False, out=True)
def ldl_factor_ex(input: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """L and D in one matrix, the pivots, and codes that are not zero where D is singular."""
    return named(LDL_FACTOR_EX, _factored("ldl_factor_ex", input, hermitian, check_errors))


@public("linalg.ldl_factor", function=False, method=False, out=True)
def ldl_factor(input: Tensor, *, hermitian: bool = False) -> Any:
    """L and D in one matrix, of which one triangle of A is read, and the pivots."""
    return named(LDL_FACTOR, _factored("ldl_factor", input, hermitian, True)[:2])


# ----- solving ------------------------------------------------------------------------------------------------------


def _unpacked(packed: Array, pivots: Array) -> tuple[Array, Array, Array]:
    """L, the order of rows that the pivots make, and which columns begin a block of two in D."""
    lower = np.tril(packed, -1)
    size = len(lower)
    order = np.arange(size)
    begins = np.zeros(size, bool)
    step = 0
    while step < size:
        width = 2 if pivots[step] < 0 else 1
        begins[step] = width == 2
        first, chosen = step + width - 1, abs(int(pivots[step])) - 1
        order[[first, chosen]] = order[[chosen, first]]
        lower[[first, chosen], :step] = lower[[chosen, first], :step]  # LAPACK leaves the earlier columns as they were
        step += width
    places = np.flatnonzero(begins)
    lower[places + 1, places] = 0  # this element is D's
    lower[np.arange(size), np.arange(size)] = 1
    return lower, order, begins


def _divided(right: Array, packed: Array, begins: Array, hermitian: bool) -> Array:
    """D^-1 `right`, where D has blocks of two that begin where `begins` says."""
    diagonal = np.diagonal(packed, 0, -2, -1)
    if hermitian:
        diagonal = diagonal.real
    pairs = begins.any()
    if not pairs:
        return right / diagonal[..., None]
    below = np.where(begins[..., :-1], np.diagonal(packed, -1, -2, -1), 0)
    above = below.conj() if hermitian else below
    ends = np.concatenate([np.zeros_like(begins[..., :1]), begins[..., :-1]], -1)
    determinants = diagonal[..., :-1] * diagonal[..., 1:] - below * above
    determinants = np.where(begins[..., :-1], determinants, 1)
    alone = right / np.where(begins | ends, 1, diagonal)[..., None]
    result = np.array(np.where((begins | ends)[..., None], 0, alone))
    first, second = right[..., :-1, :], right[..., 1:, :]
    starts = begins[..., :-1, None]
    upper = (diagonal[..., 1:, None] * first - above[..., None] * second) / determinants[..., None]
    lower = (diagonal[..., :-1, None] * second - below[..., None] * first) / determinants[..., None]
    result[..., :-1, :] = np.where(starts, upper, result[..., :-1, :])
    result[..., 1:, :] = np.where(starts, lower, result[..., 1:, :])
    return result


@primitive(
    "NotImplemented",
    axes=Last(2, vectors=("pivots",)),
    LD=no_derivative("linalg_ldl_solve"),
    B=no_derivative("linalg_ldl_solve"),
    shape=lambda LD, pivots, B, hermitian: column_major(np.matmul(LD, B)),
)
@on_host
def _ldl_solve(LD: Array, pivots: Array, B: Array, hermitian: bool) -> Array:
    hermitian = hermitian and LD.dtype.kind == "c"
    *batch, size = pivots.shape
    lower, order, begins = (
        np.empty(LD.shape, LD.dtype),
        np.empty((*batch, size), np.int64),
        np.empty(pivots.shape, bool),
    )
    for place in np.ndindex(*batch):
        lower[place], order[place], begins[place] = _unpacked(LD[place], pivots[place])
    permutation = np.zeros(LD.shape, LD.dtype)
    np.put_along_axis(permutation, order[..., None], 1, -1)  # row i of the result is row order[i]
    half = solve_triangle(lower, np.matmul(permutation, B), False, True)
    half = _divided(half, LD, begins, hermitian)
    turned = lower.swapaxes(-1, -2)
    half = solve_triangle(turned.conj() if hermitian else turned, half, True, True)
    return column_major(np.matmul(permutation.swapaxes(-1, -2), half))


@public("linalg.ldl_solve", function=False, method=False, out=True)
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """The solution of A X = B from the factors of A that `linalg.ldl_factor` gave."""
    name = "torch.linalg.ldl_solve"
    check_square(name, LD)
    check_floating(name, LD, "ldl_solve_kernel_cpu")
    if B._array.ndim < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-1, 0], but got -2): {name} needs a matrix B, its "
            f"shape is {list(B._array.shape)}"
        )
    sizes, right = LD._array.shape[-2:], B._array.shape[-2:]
    if LD._kind.dtype is not B._kind.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {LEGACY_NAMES[B._kind.dtype]} and A of type "
            f"{LEGACY_NAMES[LD._kind.dtype]} instead: {name}"
        )
    if sizes[0] != right[0]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {sizes[0]} by {sizes[1]} but each b matrix is "
            f"{right[0]} by {right[1]}"
        )
    if pivots._array.shape != LD._array.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots._array.shape)} instead of {list(LD._array.shape[:-1])}"
        )
    if pivots._kind.dtype.category != INTEGER:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {LEGACY_NAMES[pivots._kind.dtype]}")
    batch_shape(name, LD, B)
    check_pivots(pivots, sizes[0], "ldl_solve")
    return _ldl_solve(LD, pivots, B, hermitian)
