"""LU factors, the matrix exponential, and the ops of `linalg` that are made of other ops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._backends import lapack
from ..._core.arrays.views import broadcast_shapes
from ..._core.backend import as_array, read
from ..._core.dtype import FLOAT, LEGACY_NAMES, int32
from ..._core.process.caller import warn_of_old_name
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL, LOWER, on
from ..._dispatch.axes import MATRICES, Last
from ..._dispatch.changes.exact_out import write_packed
from ..._dispatch.dispatch import Array, primitive, several
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from ..._dispatch.public.return_types import named, return_type
from ..pointwise.binary import conj
from ..shape.join import cat
from ..shape.view import wrap_dim
from .checks import (
    check_codes,
    check_floating,
    check_kernel,
    check_matrix,
    check_pivots,
    check_same_dtype,
    check_square,
    column_major,
    row_major,
)
from .matmul import hermitian
from .systems import (
    _solve_triangular,
    check_pair,
    inv,
    solve,
    solve_triangle,
)  # fmt: skip

LINALG_LU = return_type("linalg_lu", ("P", "L", "U"))
LU_FACTOR = return_type("linalg_lu_factor", ("LU", "pivots"))
LU_FACTOR_EX = return_type("linalg_lu_factor_ex", ("LU", "pivots", "info"))
LU_UNPACK = return_type("lu_unpack", ("P", "L", "U"))


def factored(matrices: Array, pivot: bool) -> tuple[Array, Array, Array]:
    """L and U in one array, the row swaps (counted from 1), and the order of rows that they make."""
    done = lapack.factored(matrices) if pivot and type(matrices) is np.ndarray else None
    if done is not None:
        return *done, _order_of_swaps(done[1], matrices.shape[-2])
    packed = np.array(matrices, order="C", like=matrices)
    *batch, rows, columns = packed.shape
    packed = packed.reshape(math.prod(batch), rows, columns)
    count = min(rows, columns)
    swaps = np.tile(np.arange(1, count + 1, dtype=np.int32, like=matrices), (len(packed), 1))
    order = np.tile(np.arange(rows, like=matrices), (len(packed), 1))
    each = np.arange(len(packed), like=matrices)
    for step in range(count):
        if pivot:
            chosen = step + _sizes(packed[:, step:, step]).argmax(-1)
            swaps[:, step] = chosen + 1
            packed[each, step], packed[each, chosen] = packed[each, chosen], packed[each, step]
            order[each, step], order[each, chosen] = order[each, chosen], order[each, step]
        head = packed[:, step, step]
        divisor = np.where(head == 0, 1, head)
        packed[:, step + 1 :, step] /= divisor[:, None]
        packed[:, step + 1 :, step + 1 :] -= packed[:, step + 1 :, step, None] * packed[:, step, None, step + 1 :]
    return packed.reshape(*batch, rows, columns), swaps.reshape(*batch, count), order.reshape(*batch, rows)


def _sizes(values: Array) -> Array:
    """What LAPACK compares to find a pivot: for complex numbers the sum of the parts' sizes."""
    return np.abs(values.real) + np.abs(values.imag) if values.dtype.kind == "c" else np.abs(values)


def _permutation(order: Array, dtype: Any) -> Array:
    """The matrix P with P[order[i], i] = 1."""
    return row_major((order[..., None, :] == np.arange(order.shape[-1], like=order)[:, None]).astype(dtype))


def _order_of_swaps(pivots: Array, rows: int) -> Array:
    if type(pivots) is np.ndarray and pivots.ndim == 1:
        numbers = list(range(rows))
        for step, chosen in enumerate(pivots.tolist()):
            numbers[step], numbers[chosen - 1] = numbers[chosen - 1], numbers[step]
        return np.array(numbers)
    order = np.array(np.broadcast_to(np.arange(rows, like=pivots), (*pivots.shape[:-1], rows)), like=pivots)
    for step in range(pivots.shape[-1]):
        chosen = pivots[..., step, None].astype(np.int64) - 1
        here = order[..., step].copy()
        order[..., step] = np.take_along_axis(order, chosen, -1)[..., 0]
        np.put_along_axis(order, chosen, here[..., None], -1)
    return order


def _unpacked(packed: Array) -> tuple[Array, Array]:
    rows, columns = packed.shape[-2:]
    count = min(rows, columns)
    lower = np.tril(packed[..., :count], -1)
    diagonal = np.arange(count, like=packed)
    lower[..., diagonal, diagonal] = 1
    return lower, np.triu(packed[..., :count, :])


def _lu_gradient(of_lower: Any, of_upper: Any, permutation: Any, lower: Tensor, upper: Tensor) -> Tensor:
    """P L^-H (strict lower part of L^H grad_L + upper part of grad_U U^H) U^-H, extended to all shapes of matrices."""
    rows, columns = lower._array.shape[-2], upper._array.shape[-1]
    count = min(rows, columns)
    of_lower = lower * 0 if of_lower is None else of_lower
    of_upper = upper * 0 if of_upper is None else of_upper
    first_lower, first_upper = lower[..., :count, :], upper[..., :count]
    beyond = None
    if rows > columns:  # the rows below are A2 U^-1
        beyond = _solve_triangular(hermitian(first_upper), of_lower[..., count:, :], False, False, False)
        of_upper = of_upper - hermitian(lower[..., count:, :]) @ beyond
        of_lower = of_lower[..., :count, :]
    elif columns > rows:  # the columns to the right are L^-1 A2
        beyond = _solve_triangular(hermitian(first_lower), of_upper[..., count:], True, True, True)
        of_lower = of_lower - beyond @ hermitian(upper[..., count:])
        of_upper = of_upper[..., :count]
    middle = (hermitian(first_lower) @ of_lower).tril(-1) + (of_upper @ hermitian(first_upper)).triu()
    middle = _solve_triangular(hermitian(first_upper), middle, False, False, False)
    total = _solve_triangular(hermitian(first_lower), middle, True, True, True)
    if beyond is not None:
        total = cat([total, beyond], -2 if rows > columns else -1)
    return total if permutation is None else permutation @ total


def _lu_gradients(grads: Any, needs: Any, P: Any, L: Any, U: Any, pivot: bool) -> list[Any]:
    return [_lu_gradient(grads[1], grads[2], P if pivot else None, L, U)]


def _factors(matrices: Array, with_permutation: bool, with_factors: bool) -> tuple[Array, Array, Array]:
    """The shape rule of P, L and U."""
    *batch, rows, columns = matrices.shape
    count = min(rows, columns)

    def new(*shape: int) -> Array:
        return np.empty((*batch, *shape) if shape else 0, matrices.dtype, like=matrices)

    permutation = new(rows, rows) if with_permutation else new()
    return (permutation, new(rows, count), new(count, columns)) if with_factors else (permutation, new(), new())


def _factored(A: Array, pivot: bool) -> tuple[Array, Array, Array]:
    """The shape rule of L and U in one matrix, swaps and codes."""
    *batch, rows, columns = A.shape
    pivots = np.empty((*batch, min(rows, columns)), np.int32, like=A)
    return column_major(A.copy()), pivots, np.empty(tuple(batch), np.int32, like=A)


@several(
    "LinalgLuBackward0",
    axes=MATRICES,
    joint=_lu_gradients,
    results=("P", "L", "U"),
    shape=lambda A, p: _factors(A, p, True),
)
def _lu(A: Array, pivot: bool) -> Any:
    packed, _, order = factored(A, pivot)
    lower, upper = _unpacked(packed)
    permutation = _permutation(order, A.dtype) if pivot else np.empty(0, A.dtype, like=A)
    return permutation, row_major(lower), row_major(upper)


@public("linalg.lu", function=False, method=False, out=True)
def linalg_lu(A: Tensor, *, pivot: bool = True) -> Any:
    """A = P L U: a permutation, a lower triangle with ones on the diagonal, an upper triangle."""
    check_matrix("linalg.lu", A)
    check_kernel("lu_cpu", A)
    permutation, lower, upper = _lu(A, pivot)
    return named(LINALG_LU, (permutation.detach(), lower, upper))


def _lu_factor_gradients(grads: Any, needs: Any, LU: Any, pivots: Any, pivot: bool) -> list[Any]:
    grad = grads[0]
    if grad is None:
        return [None]
    permutation, lower, upper = lu_unpack(LU, pivots, unpack_pivots=pivot)
    count = lower._array.shape[-1]
    return [
        _lu_gradient(
            grad[..., :count].tril(-1), grad[..., :count, :].triu(), permutation if pivot else None, lower, upper
        )
    ]


@several(
    "LinalgLuFactorExBackward0",
    axes=MATRICES,
    joint=_lu_factor_gradients,
    results=("LU", "pivots", "info"),
    shape=_factored,
)
def _lu_factor_ex(A: Array, pivot: bool) -> Any:
    packed, pivots, _ = factored(A, pivot)
    zero = np.diagonal(packed, 0, -2, -1) == 0
    info = np.where(zero.any(-1), zero.argmax(-1) + 1, 0) if zero.shape[-1] else np.zeros(A.shape[:-2], like=A)
    return column_major(packed), pivots, as_array(info).astype(np.int32, copy=False)


@public("linalg.lu_factor_ex", function=False, method=False, out=True)
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """L and U in one matrix, the row swaps, and codes that are not zero where U has a zero on its diagonal."""
    check_matrix("torch.lu_factor_ex", A)
    check_kernel("lu_cpu", A)
    packed, pivots, info = _lu_factor_ex(A, pivot)
    if check_errors:
        check_codes(info, "torch.linalg.lu_factor_ex")
    return named(LU_FACTOR_EX, (packed, pivots, info))


@public("linalg.lu_factor", function=False, method=False, out=True)
def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """L and U in one matrix, and the row swaps."""
    packed, pivots, info = lu_factor_ex(A, pivot=pivot)
    check_codes(info, "torch.linalg.lu_factor")
    return named(LU_FACTOR, (packed, pivots))


def _lu_unpack_gradients(grads: Any, needs: Any, LU_data_sym_sizes: Any) -> list[Any]:
    of_lower, of_upper = grads[1:]
    rows, columns = LU_data_sym_sizes[-2:]
    count = min(rows, columns)
    parts = []
    if of_lower is not None:
        below = of_lower.tril(-1)
        if columns > count:
            below = cat([below, below.new_zeros((*below._array.shape[:-1], columns - count))], -1)
        parts.append(below)
    if of_upper is not None:
        above = of_upper.triu()
        if rows > count:
            above = cat([above, above.new_zeros((*above._array.shape[:-2], rows - count, columns))], -2)
        parts.append(above)
    return [parts[0] + parts[1] if len(parts) == 2 else parts[0] if parts else None, None]


@primitive(
    "LuUnpackBackward0",
    axes=Last(2, vectors=("pivots",)),
    joint=_lu_unpack_gradients,
    shape=lambda LU, pivots, data, swaps: _factors(LU, swaps, data),
)
def _lu_unpack(LU_data: Array, pivots: Array, unpack_data: bool, unpack_pivots: bool) -> Any:
    nothing = np.empty(0, LU_data.dtype, like=LU_data)
    permutation = lower = upper = nothing
    if unpack_pivots:
        permutation = _permutation(_order_of_swaps(pivots, LU_data.shape[-2]), LU_data.dtype)
    if unpack_data:
        lower, upper = (row_major(each) for each in _unpacked(LU_data))
    return permutation, lower, upper


@public(method=False, out=True)
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """P, L and U from the result of `linalg.lu_factor`."""
    if unpack_pivots and str(LU_pivots.dtype) != "torch.int32":
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.")
    shape, given = LU_data._array.shape, LU_pivots._array.shape
    if len(shape) < 2:
        raise RuntimeError(f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {list(shape)}")
    if unpack_pivots and not given:
        raise RuntimeError("torch.lu_unpack: pivots are between 1 and LU.size(-2), but there is none")
    if unpack_pivots:
        check_pivots(LU_pivots, shape[-2], "lu_unpack")
    permutation, lower, upper = _lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)
    return named(LU_UNPACK, (permutation.detach(), lower, upper))


def _check_pivot_shape(LU: Tensor, pivots: Tensor) -> None:
    if pivots._kind.dtype is not int32:
        raise RuntimeError(f"linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32, not {pivots.dtype}")
    shape, wanted = pivots._array.shape, LU._array.shape[:-1]
    if not shape:
        raise IndexError(
            "Dimension specified as -1 but tensor has no dimensions: linalg.lu_solve has a pivot for each row"
        )
    if shape[-1:] != wanted[-1:]:
        raise RuntimeError(
            "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix: pivots has "
            f"shape {list(shape)}, LU has {list(LU._array.shape)}"
        )
    if shape != wanted:
        raise RuntimeError(
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(shape)} and LU with {list(LU._array.shape)}"
        )


@public("linalg.lu_solve", function=False, method=False, out=True)
def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """The solution of A X = B from the LU factors of A; `left=False`: of X A = B; `adjoint`: with A^H for A."""
    name = "torch.linalg.lu_solve"
    check_floating("linalg.lu_solve", LU, "lu_solve_cpu")
    check_square(name, LU, "LU")
    check_same_dtype("linalg.lu_solve", LU, B)
    check_pair("linalg.lu_solve", LU, B, left)
    _check_pivot_shape(LU, pivots)
    check_pivots(pivots, LU._array.shape[-2], "lu_solve")
    return _lu_solve(LU, pivots, B, left, adjoint)


def _lu_solve_of_factors(grad: Tensor, LU: Any, pivots: Any, result: Tensor, left: bool, adjoint: bool) -> Any:
    """The gradient of A is that of any linear system; with A = P L U it is spread over L and U."""
    of_right = _lu_solve(LU, pivots, grad, left, not adjoint)
    of_matrix = -(of_right @ hermitian(result)) if left else -(hermitian(result) @ of_right)
    if adjoint:
        of_matrix = hermitian(of_matrix)
    permutation, lower, upper = lu_unpack(LU, pivots)
    turned = permutation.mT @ of_matrix
    return (turned @ hermitian(upper)).tril(-1) + (hermitian(lower) @ turned).triu()


def _lu_solve_of_right_side(grad: Tensor, LU: Any, pivots: Any, left: bool, adjoint: bool) -> Tensor:
    return _lu_solve(LU, pivots, grad, left, not adjoint)


def _solution(LU: Array, pivots: Array, B: Array, left: bool, adjoint: bool) -> Array:
    """The shape rule of a solution."""
    batch = broadcast_shapes(LU.shape[:-2], B.shape[:-2])
    found = np.empty((*batch, *B.shape[-2:]), B.dtype, like=B)
    return column_major(found) if left else found


@primitive(
    "LinalgLuSolveBackward0",
    axes=Last(2, vectors=("pivots",)),
    shape=_solution,
    LU=_lu_solve_of_factors,
    B=_lu_solve_of_right_side,
)
def _lu_solve(LU: Array, pivots: Array, B: Array, left: bool, adjoint: bool) -> Array:
    right = B if left else B.swapaxes(-1, -2).conj()  # X A = B is A^H X^H = B^H
    turned = left == adjoint
    if type(LU) is np.ndarray:
        solution = lapack.solved_by_factors(LU, pivots, right, turned)
        if solution is not None:
            return solution if left else solution.swapaxes(-1, -2).conj()
    permutation = _permutation(_order_of_swaps(pivots, LU.shape[-1]), LU.dtype)
    if turned:
        adjoint_packed = LU.swapaxes(-1, -2).conj()
        half = solve_triangle(adjoint_packed, right, False, False)
        solution = np.matmul(permutation, solve_triangle(adjoint_packed, half, True, True))
    else:
        half = solve_triangle(LU, np.matmul(permutation.swapaxes(-1, -2), right), False, True)
        solution = solve_triangle(LU, half, True, False)
    return column_major(solution) if left else row_major(solution.swapaxes(-1, -2).conj())


@public(autocast=on(cpu=FULL))
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """`linalg.lu_factor_ex` under its old name; the codes only with `get_infos`."""
    warn_of_old_name("lu", "linalg.lu_factor / torch.linalg.lu_factor_ex")
    packed, pivots, info = lu_factor_ex(A, pivot=pivot)
    result = (packed, pivots, info) if get_infos else (packed, pivots)
    if out is None:
        return result
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    if len(out) != len(result):
        raise TypeError(f"expected tuple of {len(result)} elements but got {len(out)}")
    return tuple(into.resize_as_(each).copy_(each) for each, into in zip(result, out, strict=True))


@public(out=True, autocast=on(cpu=FULL))
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """`linalg.lu_solve` under its old name."""
    warn_of_old_name("lu_solve", "linalg.lu_solve")
    return linalg_lu_solve(LU_data, LU_pivots, input)


# ----- the matrix exponential ---------------------------------------------------------------------------------------

_DEGREE = 18
"""Terms of the Taylor series; for a norm of at most 1/2 the next one is below the rounding errors of float64."""


def _exponential(matrices: Array) -> Array:
    """exp(A) as the 2^k-th power of exp(A / 2^k)."""
    size = matrices.shape[-1]
    norm = np.abs(matrices).sum(-2).max(-1, initial=0)
    finite = np.where(np.isfinite(norm), norm, 1)
    halvings = np.maximum(np.ceil(np.log2(np.maximum(finite, 1e-300))) + 1, 0).astype(np.int64)
    scaled = matrices * np.exp2(-halvings.astype(matrices.real.dtype))[..., None, None]
    result = np.array(np.broadcast_to(np.eye(size, dtype=matrices.dtype, like=matrices), matrices.shape), like=matrices)
    for term in range(_DEGREE, 0, -1):  # Horner's rule
        result = np.matmul(scaled / term, result)
        result[..., np.arange(size, like=matrices), np.arange(size, like=matrices)] += 1
    for step in range(int(read(halvings.max(initial=0)))):
        result = np.where((halvings > step)[..., None, None], np.matmul(result, result), result)
    return result


def _matrix_exp_gradient(grad: Tensor, self: Tensor) -> Tensor:
    """The upper right block of exp([[A^H, grad], [0, A^H]])."""
    size = self._array.shape[-1]
    adjoint = hermitian(self)
    below = cat([adjoint * 0, adjoint], -1)
    block = cat([cat([adjoint, grad], -1), below], -2)
    return _matrix_exp(block)[..., :size, size:]


@primitive(
    "LinalgMatrixExpBackward0",
    axes=MATRICES,
    self=_matrix_exp_gradient,
    shape=lambda self: np.empty_like(self, order="C"),
)
def _matrix_exp(self: Array) -> Array:
    # Squaring doubles the rounding errors, so that narrower types need the precision of float64.
    wide = np.complex128 if self.dtype.kind == "c" else np.float64
    return _exponential(self.astype(wide, copy=False)).astype(self.dtype, copy=False)


@public("linalg.matrix_exp", function=False, method=False)
def linalg_matrix_exp(input: Tensor) -> Tensor:
    """The exponential of a square matrix, or of each one in a batch."""
    check_square("linalg.matrix_exp", input)
    check_floating("linalg.matrix_exp", input)
    return _matrix_exp(input)


@public()
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of a square matrix, or of each one in a batch."""
    return linalg_matrix_exp(input)


# ----- made of other ops --------------------------------------------------------------------------------------------


@public("linalg.diagonal", function=False, method=False)
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices."""
    return A.diagonal(offset, dim1, dim2)


@public("linalg.vecdot", function=False, method=False, out=True, autocast=LOWER)
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The dot products of vectors along `dim`, those of `x` conjugated."""
    check_floating("linalg.vecdot", x)
    if x._kind.dtype is not y._kind.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{LEGACY_NAMES[x._kind.dtype]} and y of type {LEGACY_NAMES[y._kind.dtype]} instead"
        )
    if x._array.ndim == y._array.ndim == 1:
        return x.vdot(y)
    return (conj(x) * y).sum(dim)


@public("linalg.vander", function=False, method=False)
def vander(x: Tensor, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element, along a new last dimension."""
    if x._kind.dtype.itemsize == 2 and x._kind.dtype.category == FLOAT:
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got "
            f"{LEGACY_NAMES[x._kind.dtype]}"
        )
    vector = x if x._array.ndim else x.reshape(1)
    count = vector._array.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError(f"N must be greater than 1, but it is {count}")
    powers = vector.unsqueeze(-1).expand(*vector._array.shape, count - 1).cumprod(-1)
    return cat([powers.new_ones((*vector._array.shape, 1)), powers], -1)


@public("linalg.tensorinv", function=False, method=False, out=write_packed, autocast=on(cpu=FULL))
def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """The inverse for tensordot over the last dimensions; the first `ind` dimensions count as rows."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but it is {ind}")
    shape = input._array.shape
    rows, columns = math.prod(shape[:ind]), math.prod(shape[ind:])
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns} != {rows}"
        )
    flat = inv(input.reshape(rows, columns))
    return flat.reshape(*shape[ind:], *shape[:ind])


@public("linalg.tensorsolve", function=False, method=False, out=write_out, autocast=on(cpu=FULL))
def tensorsolve(input: Tensor, other: Tensor, dims: Any = None) -> Tensor:
    """The X with tensordot(A, X, X.ndim) = B; `dims` of A are moved to its end first."""
    system = input
    if dims is not None:
        moved = [wrap_dim(each, input._array.ndim) for each in dims]
        system = system.movedim(moved, list(range(input._array.ndim - len(moved), input._array.ndim)))
    shape = system._array.shape[other._array.ndim :]
    size = math.prod(shape)
    if size * size != system._array.size:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {size} != {math.prod(system._array.shape[: other._array.ndim])}"
        )
    flat = solve(system.reshape(size, size), other.flatten())
    return flat.reshape(shape)
