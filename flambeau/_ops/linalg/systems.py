"""Determinants, inverses, linear systems, Cholesky factors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._backends import lapack
from ..._core.arrays.quick import joint_shape
from ..._core.backend import as_array, read
from ..._core.modes import THREAD
from ..._core.process.caller import warn_of_old_name
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL, on
from ..._dispatch.axes import MATRICES
from ..._dispatch.changes.exact_out import write_packed
from ..._dispatch.dispatch import Array, primitive, several
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from ..._dispatch.public.return_types import named, return_type
from ..pointwise.binary import conj
from .checks import (
    batch_shape,
    check_codes,
    check_diagonal,
    check_floating,
    check_kernel,
    check_matrix,
    check_precise,
    check_same_dtype,
    check_square,
    column_major,
    row_major,
)  # fmt: skip
from .matmul import hermitian

SLOGDET = return_type("slogdet", ("sign", "logabsdet"))
LINALG_SLOGDET = return_type("linalg_slogdet", ("sign", "logabsdet"))
INV_EX = return_type("linalg_inv_ex", ("inverse", "info"))
SOLVE_EX = return_type("linalg_solve_ex", ("result", "info"))
CHOLESKY_EX = return_type("linalg_cholesky_ex", ("L", "info"))
TRIANGULAR_SOLVE = return_type("triangular_solve", ("solution", "cloned_coefficient"))


def _each(matrices: Array, compute: Callable[[Array], tuple[Array, int]], like: Array) -> tuple[Array, Array]:
    """Run `compute`, which gives a result and an info code, on each matrix: the slow way, for batches with failures."""
    results = np.empty_like(like)
    info = np.zeros(matrices.shape[:-2], np.int32, like=matrices)
    for place in np.ndindex(info.shape):
        results[place], info[place] = compute(matrices[place])
    return results, info


# ----- determinants -------------------------------------------------------------------------------------------------


def _cofactors(A: Tensor) -> Any:
    """The conjugate derivative of the determinant, also where that is zero: products of all singular values but one."""
    from .decompose import _svd

    U, S, Vh = _svd(A, False)
    size = A._array.shape[-1]
    others = S.unsqueeze(-2).expand(*S._array.shape, size).masked_fill(_identity(A) != 0, 1).prod(-1)
    return conj(_det(U @ Vh))[..., None, None] * ((U * others.unsqueeze(-2)) @ Vh)


def _identity(A: Tensor) -> Tensor:
    from ..create.constants import eye

    return eye(A._array.shape[-1], dtype=A.dtype, device=A.device)


def _det_gradient(grad: Tensor, A: Tensor, result: Tensor) -> Any:
    if A._array.size == 0:
        return None
    if A._array.shape[-1] == 1:  # the determinant is the element itself
        return grad[..., None, None].expand(A._array.shape)
    scale = grad * conj(result)
    if not read(np.all(result._array)):
        return grad[..., None, None] * _cofactors(A)
    return _solve_matrix(hermitian(A), _diagonal_matrix(scale, A))


def _diagonal_matrix(values: Any, A: Any) -> Any:
    """`values`, one for each matrix of `A`, times the identity."""
    return values[..., None, None] * _identity(A)


@primitive("LinalgDetBackward0", axes=MATRICES, A=_det_gradient)
def _det(A: Array) -> Array:
    found = lapack.factored(A) if type(A) is np.ndarray else None
    if found is None:
        return lapack.det(A)
    packed, swaps = found
    swapped = (swaps != np.arange(1, A.shape[-1] + 1)).sum(-1) % 2
    with np.errstate(over="ignore", invalid="ignore"):
        return np.diagonal(packed, axis1=-2, axis2=-1).prod(-1) * (1 - 2 * swapped).astype(A.dtype)


@public("linalg.det", function=False, method=False, out=True)
def linalg_det(A: Tensor) -> Tensor:
    """The determinant of a square matrix, or of each one in a batch."""
    check_square("linalg.det", A)
    check_floating("linalg.det", A, "lu_cpu")
    return _det(A)


@public()
def det(input: Tensor) -> Tensor:
    """The determinant of a square matrix, or of each one in a batch."""
    return linalg_det(input)


def _slogdet_gradients(grads: Any, needs: Any, A: Any, sign: Any) -> list[Any]:
    of_sign, scale = grads
    if A.is_complex():
        scale = 0 if scale is None else scale
        if of_sign is not None:
            scale = scale - (conj(of_sign) * sign).imag * 1j
    if scale is None or isinstance(scale, int):
        return [A * 0]
    inverse, _ = _inv_ex(hermitian(A))
    return [scale[..., None, None] * inverse]


@several("LinalgSlogdetBackward0", axes=MATRICES, joint=_slogdet_gradients, results=("sign", "logabsdet"))
def _slogdet(A: Array) -> Any:
    sign, logabsdet = lapack.slogdet(A)
    return as_array(sign), as_array(logabsdet)


@public("linalg.slogdet", function=False, method=False, out=True)
def linalg_slogdet(A: Tensor) -> Any:
    """The sign and the logarithm of the size of the determinant."""
    check_square("linalg.slogdet", A)
    check_precise("linalg.slogdet", A)
    return named(LINALG_SLOGDET, _slogdet(A))


@public(out=True)
def slogdet(input: Tensor) -> Any:
    """The sign and the logarithm of the size of the determinant."""
    return named(SLOGDET, linalg_slogdet(input))


@public()
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN where that is negative."""
    from ..index.masked import where

    check_square("logdet", input)
    check_precise("logdet", input)
    sign, logabsdet = _slogdet(input)
    if sign.is_complex():
        return sign.log() + logabsdet
    return where(sign == -1, math.nan, logabsdet)


# ----- inverses and linear systems ----------------------------------------------------------------------------------


def _inverse_or_code(matrix: Array) -> tuple[Array, int]:
    try:
        return lapack.inv(matrix), 0
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.inf), zero_pivot(matrix)


def zero_pivot(matrix: Array) -> int:
    """Which pivot of Gaussian elimination is zero, counted from 1; 0: none."""
    from .lu import factored

    diagonal = np.diagonal(factored(matrix, True)[0])
    return int(read(np.argmax(diagonal == 0))) + 1 if read((diagonal == 0).any()) else 0


@several(
    "LinalgInvExBackward0",
    axes=MATRICES,
    self=lambda grad, inverse: -(hermitian(inverse) @ (grad @ hermitian(inverse))),
    results=("inverse", "info"),
)
def _inv_ex(self: Array) -> Any:
    found = lapack.inverted(self) if type(self) is np.ndarray else None
    if found is not None:
        return found
    try:
        return column_major(lapack.inv(self)), np.zeros(self.shape[:-2], np.int32, like=self)
    except np.linalg.LinAlgError:
        inverse, info = _each(self, _inverse_or_code, self)
        return column_major(inverse), info


@public("linalg.inv_ex", function=False, method=False, out=True, autocast=on(cpu=FULL))
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """The inverse of square matrices, and codes that are not zero where there is none."""
    check_square("linalg.inv", A)
    check_precise("linalg.inv", A)
    inverse, info = _inv_ex(A)
    if check_errors:
        check_codes(info, "linalg.inv_ex")
    return named(INV_EX, (inverse, info))


@public("linalg.inv", function=False, method=False, out=True, autocast=on(cpu=FULL))
def inv(A: Tensor) -> Tensor:
    """The inverse of a square matrix, or of each one in a batch."""
    check_square("linalg.inv", A)
    check_precise("linalg.inv", A)
    inverse, info = _inv_ex(A)
    check_codes(info, "linalg.inv")
    return inverse


@public(out=True, autocast=on(cpu=FULL))
def inverse(input: Tensor) -> Tensor:
    """The inverse of a square matrix, or of each one in a batch."""
    return inv(input)


def _solve_gradients(grads: Any, needs: Any, A: Any, B_sym_sizes: Any, result: Any, left: bool) -> list[Any]:
    return _gradients_of_solution(
        grads[0], needs, A, B_sym_sizes, result, left, lambda right: _solve_ex(hermitian(A), right, left)[0]
    )


def _gradients_of_solution(
    grad: Any, needs: Any, A: Any, right_shape: Any, result: Any, left: bool, solved: Callable[[Any], Any]
) -> list[Any]:
    """The gradients by both sides; `solved` solves the system of the adjoint of `A`."""
    if grad is None:
        return [None, None]
    vector = len(right_shape) == 1 or (A.ndim - 1 == len(right_shape) and tuple(right_shape) == A._array.shape[:-1])
    of_right = solved(grad.unsqueeze(-1) if vector else grad)
    if vector:
        result = result.unsqueeze(-1)
    of_matrix = None
    if needs[0]:
        of_matrix = -(of_right @ hermitian(result)) if left else -(hermitian(result) @ of_right)
    return [of_matrix, of_right.squeeze(-1) if vector else of_right]


def _is_vector(A: Array, B: Array) -> bool:
    return bool(B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1]))


@several("LinalgSolveExBackward0", joint=_solve_gradients, results=("result", "info"))
def _solve_ex(A: Array, B: Array, left: bool) -> Any:
    vector = _is_vector(A, B)
    right = B[..., None] if vector else B
    if not left:
        A, right = A.swapaxes(-1, -2), right.swapaxes(-1, -2)
    info = np.zeros(A.shape[:-2], np.int32, like=A)
    try:
        solution = lapack.solve(A, right)
    except np.linalg.LinAlgError:
        inverse, info = _each(A, _inverse_or_code, A)
        solution = np.matmul(inverse, right)
    if not vector:
        solution = column_major(solution)
        return (solution if left else solution.swapaxes(-1, -2)), info
    solution = solution[..., 0]
    return (column_major(solution) if solution.ndim > 1 else row_major(solution)), info


def _factored_gradients(
    grads: Any, needs: Any, A: Any, B_sym_sizes: Any, result: Any, LU: Any, pivots: Any, left: bool
) -> list[Any]:
    from .lu import _lu_solve

    def solved(right: Any) -> Any:
        if THREAD.modes.grad:  # factors are no functions of A that could be differentiated
            return _solve_ex(hermitian(A), right, left)[0]
        return _lu_solve(LU, pivots, right, True, True) if left else _lu_solve(LU, pivots, right.mT, True, True).mT

    return _gradients_of_solution(grads[0], needs, A, B_sym_sizes, result, left, solved)


@several("LinalgSolveExBackward0", joint=_factored_gradients, results=("result", "LU", "pivots", "info"))
def _solve_keeping_factors(A: Array, B: Array, left: bool) -> Any:
    """The solution, and the factors of A or of its transpose, so that the derivative does not compute them again."""
    matrix, right = (A, B[..., None] if _is_vector(A, B) else B)
    if not left:
        matrix, right = matrix.swapaxes(-1, -2), right.swapaxes(-1, -2)
    packed, pivots = lapack.factored(matrix)
    if not np.diagonal(packed, axis1=-2, axis2=-1).all():
        result, info = _solve_ex.kernel(A, B, left)
        return result, packed, pivots, info
    solution = lapack.solved_by_factors(packed, pivots, right, False)
    if _is_vector(A, B):
        solution = column_major(solution[..., 0]) if A.ndim > 2 else solution[..., 0]
    elif not left:
        solution = solution.swapaxes(-1, -2)
    return solution, packed, pivots, np.zeros(A.shape[:-2], np.int32)


def _solved(A: Tensor, B: Tensor, left: bool) -> tuple[Tensor, Tensor]:
    """The solution and codes; where derivatives may be asked for, factors are kept for them."""
    modes = THREAD.modes
    recorded = modes.grad and (A.requires_grad or B.requires_grad)
    if recorded and A._kind is B._kind and type(A._array) is np.ndarray:
        batch = A._array.shape[:-2]
        same_batch = B._array.shape[: len(batch)] == batch and (_is_vector(A._array, B._array) or B.ndim == A.ndim)
        if same_batch and B._array.size and lapack.are_factored(A._array):
            result, _, _, info = _solve_keeping_factors(A, B, left)
            return result, info
    result, info = _solve_ex(A, B, left)
    return result, info


def _solve_matrix(A: Any, B: Any) -> Tensor:
    """The solution X of A X = B for a matrix or batch of matrices B; infinite where A is singular."""
    return _solve_ex(A, B, True)[0]


def _check_solve(name: str, A: Tensor, B: Tensor, left: bool) -> None:
    check_square(name, A)
    check_floating(name, A, "lu_cpu")
    if not isinstance(B, Tensor):
        raise TypeError(f"{name}(): argument 'B' (position 2) must be Tensor, not {type(B).__name__}")
    check_same_dtype(name, A, B)
    if _is_vector(A._array, B._array):
        if not left:
            raise RuntimeError(
                f"{name}: Vector broadcasting of the left hand side is not supported for left=False. In this case "
                f"{name} is equivalent to B / A.squeeze(-1)"
            )
        if B._array.shape[-1] != A._array.shape[-1]:
            raise _incompatible(name, A, (B._array.shape[-1], 1), left)
        return
    check_pair(name, A, B, left)


def check_pair(name: str, A: Tensor, B: Tensor, left: bool) -> None:
    """Refuse matrices whose shapes do not fit the equation A X = B, or X A = B."""
    check_matrix(name, B, "B")
    if A._array.shape[-2 if left else -1] != B._array.shape[-2 if left else -1]:
        raise _incompatible(name, A, B._array.shape[-2:], left)
    batch_shape(name, A, B)


def _incompatible(name: str, A: Tensor, sizes: Any, left: bool) -> RuntimeError:
    rows, columns = A._array.shape[-2:]
    return RuntimeError(
        f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
        f"({rows}x{columns} and {sizes[0]}x{sizes[1]})"
    )


@public("linalg.solve_ex", function=False, method=False, out=True)
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """The solution of A X = B, and codes that are not zero where there is none."""
    _check_solve("linalg.solve", A, B, left)
    result, info = _solved(A, B, left)
    if check_errors:
        check_codes(info, "torch.linalg.solve_ex")
    return named(SOLVE_EX, (result, info))


@public("linalg.solve", function=False, method=False, out=True, autocast=on(cpu=FULL))
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The solution of A X = B; with `left=False` of X A = B."""
    _check_solve("linalg.solve", A, B, left)
    result, info = _solved(A, B, left)
    check_codes(info, "torch.linalg.solve")
    return result


# ----- triangular systems -------------------------------------------------------------------------------------------


def solve_upper(U: Array, B: Array) -> Array:
    """The solution of U X = B for an upper triangular `U`; a zero on its diagonal gives infinities."""
    try:
        return lapack.solve(U, B)  # elimination finds nothing to do below the diagonal
    except np.linalg.LinAlgError:
        shape = joint_shape(U.shape[:-2], B.shape[:-2])
        X = np.array(np.broadcast_to(B, (*shape, *B.shape[-2:])), like=U)
        for row in range(U.shape[-1] - 1, -1, -1):
            X[..., row, :] /= U[..., row, row, None]
            X[..., :row, :] -= U[..., :row, row, None] * X[..., row, None, :]
        return X


def solve_triangle(A: Array, B: Array, upper: bool, unitriangular: bool) -> Array:
    """The solution of A X = B, where only one triangle of `A` is looked at."""
    if type(A) is np.ndarray is type(B):
        done = lapack.triangle_solved(A, B, upper, unitriangular)
        if done is not None:
            return done
    triangle = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        diagonal = np.arange(A.shape[-1], like=A)
        triangle[..., diagonal, diagonal] = 1
    if upper:
        return solve_upper(triangle, B)
    # Read backwards, a lower triangle is an upper one.
    return solve_upper(triangle[..., ::-1, ::-1], B[..., ::-1, :])[..., ::-1, :]


def _triangular_gradients(
    grads: Any, needs: Any, self: Any, result: Any, upper: bool, left: bool, unitriangular: bool
) -> list[Any]:
    grad = grads[0]
    if grad is None:
        return [None, None]
    of_right = _solve_triangular(hermitian(self), grad, not upper, left, unitriangular)
    of_matrix = None
    if needs[0]:
        of_matrix = -(of_right @ hermitian(result)) if left else -(hermitian(result) @ of_right)
        inner = int(unitriangular)
        of_matrix = of_matrix.triu(inner) if upper else of_matrix.tril(-inner)
    return [of_matrix, of_right]


@primitive("LinalgSolveTriangularBackward0", axes=MATRICES, joint=_triangular_gradients)
def _solve_triangular(self: Array, B: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    if left:
        return column_major(solve_triangle(self, B, upper, unitriangular))
    turned = solve_triangle(self.swapaxes(-1, -2), B.swapaxes(-1, -2), not upper, unitriangular)
    return column_major(turned.swapaxes(-1, -2))


@public("linalg.solve_triangular", function=False, method=False, out=True)
def solve_triangular(
    input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """The solution of A X = B, or of X A = B, for a triangular A."""
    name = "linalg.solve_triangular"
    check_square(name, input)
    check_matrix(name, B, "B")
    check_same_dtype(name, input, B)
    check_pair(name, input, B, left)
    check_floating(name, input, "triangular_solve_cpu")
    return _solve_triangular(input, B, upper, left, unitriangular)


def _old_triangular_gradients(
    grads: Any, needs: Any, A: Any, solution: Any, upper: bool, transpose: bool, unitriangular: bool
) -> list[Any]:
    of_right = None
    of_matrix = None
    if grads[0] is not None:
        of_right = _triangular_solve(grads[0], conj(A), upper, not transpose, unitriangular)[0]
        inner = int(unitriangular)
        product = -(conj(solution) @ of_right.mT) if transpose else -(of_right @ hermitian(solution))
        of_matrix = product.triu(inner) if upper else product.tril(-inner)
    if grads[1] is not None:
        of_matrix = grads[1] if of_matrix is None else of_matrix + grads[1]
    return [of_right, of_matrix]


@several(
    "TriangularSolveBackward0",
    axes=MATRICES,
    joint=_old_triangular_gradients,
    results=("solution", "cloned_coefficient"),
)
def _triangular_solve(self: Array, A: Array, upper: bool, transpose: bool, unitriangular: bool) -> Any:
    batch = joint_shape(self.shape[:-2], A.shape[:-2])
    matrix = A.swapaxes(-1, -2) if transpose else A
    solution = solve_triangle(matrix, self, upper != transpose, unitriangular)
    return column_major(solution), column_major(np.broadcast_to(A, (*batch, *A.shape[-2:])).copy())


@public(out=True, autocast=on(cpu=FULL))
def triangular_solve(
    input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """The solution X of A X = input for a triangular A, and a copy of A; kept for old programs."""
    warn_of_old_name("triangular_solve", "linalg.solve_triangular")
    check_matrix("triangular_solve", input, "b")
    check_square("triangular_solve", A)
    check_same_dtype("triangular_solve", input, A)
    check_pair("triangular_solve", A, input, True)
    check_floating("triangular_solve", A, "triangular_solve_cpu")
    return named(TRIANGULAR_SOLVE, _triangular_solve(input, A, upper, transpose, unitriangular))


# ----- Cholesky -----------------------------------------------------------------------------------------------------


def _cholesky_gradient(grad: Tensor, L: Any, upper: bool) -> Tensor:
    """L^-H P L^-1, where P is the Hermitian matrix with the lower triangle of L^H grad, halved."""
    if upper:
        L, grad = hermitian(L), hermitian(grad)
    lower = (hermitian(L) @ grad).tril()
    middle = 0.5 * (lower + hermitian(lower.tril(-1)))
    once = _solve_triangular(hermitian(L), middle, True, True, False)
    return _solve_triangular(L, once, False, False, False)


def _lower_factor(matrix: Array) -> tuple[Array, int]:
    try:
        return lapack.cholesky(matrix), 0
    except np.linalg.LinAlgError:
        partial, order = np.tril(matrix), 1
        while True:
            try:
                partial[:order, :order] = lapack.cholesky(matrix[:order, :order])
            except np.linalg.LinAlgError:
                return partial, order
            order += 1


def _first_nan(lower: Array) -> Array:
    """The order of the first leading minor that is NaN, for each matrix: NumPy's library goes on where LAPACK stops.

    An infinite pivot leaves nothing known of the rows below it.
    """
    pivots = np.diagonal(lower, axis1=-2, axis2=-1)
    unknown = np.isnan(pivots)
    unknown[..., 1:] |= np.isinf(pivots[..., :-1])
    return (
        np.asarray(np.where(unknown.any(-1), unknown.argmax(-1) + 1, 0), np.int32)
        if unknown.any()
        else np.zeros(lower.shape[:-2], np.int32)
    )


def _factors(A: Array, upper: bool) -> tuple[Array, Array]:
    """Cholesky factors, and for each matrix the order of the first leading minor that is not positive, or 0."""
    matrices = A.swapaxes(-1, -2).conj() if upper else A
    found = lapack.positive_factored(matrices) if type(A) is np.ndarray else None
    if found is not None:
        factors = column_major(found.swapaxes(-1, -2).conj()) if upper else found
        return factors, _first_nan(found)
    try:
        lower = lapack.cholesky(matrices)
        info = _first_nan(lower) if type(A) is np.ndarray else np.zeros(A.shape[:-2], np.int32, like=A)
    except np.linalg.LinAlgError:
        lower, info = _each(matrices, _lower_factor, matrices)
    return column_major(lower.swapaxes(-1, -2).conj() if upper else lower), info


@several("LinalgCholeskyExBackward0", axes=MATRICES, self=_cholesky_gradient, results=("L", "info"))
def _cholesky_ex(self: Array, upper: bool) -> Any:
    return _factors(self, upper)


@primitive("CholeskyBackward0", axes=MATRICES, self=lambda grad, result, upper: _cholesky_gradient(grad, result, upper))
def _cholesky(self: Array, upper: bool) -> Array:
    return _factors(self, upper)[0] if self.size else row_major(self)


def _checked_cholesky(name: str, A: Tensor, upper: bool, check_errors: bool = True) -> tuple[Tensor, Tensor]:
    check_square("linalg.cholesky", A)
    check_floating("linalg.cholesky", A, "cholesky_cpu")
    L, info = _cholesky_ex(A, upper)
    if check_errors:
        check_codes(info, name)
    return L, info


@public("linalg.cholesky_ex", function=False, method=False, out=True, autocast=on(cpu=FULL))
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """The Cholesky factor, and codes that are not zero where there is none."""
    return named(CHOLESKY_EX, _checked_cholesky("linalg.cholesky_ex", input, upper, check_errors))


@public("linalg.cholesky", function=False, method=False, out=True, autocast=on(cpu=FULL))
def linalg_cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L with A = L L^H; with `upper` the U with A = U^H U."""
    return _checked_cholesky("linalg.cholesky", input, upper)[0]


@public(out=write_packed, autocast=on(cpu=FULL))
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The Cholesky factor of a positive-definite matrix, or of each one in a batch."""
    warn_of_old_name("cholesky", "linalg.cholesky")
    if not input._array.size:  # of any shape
        return _cholesky(input, upper)
    check_square("cholesky", input)
    check_kernel("cholesky_cpu", input)
    if not input._kind.dataless:
        check_codes(_cholesky_ex(input.detach(), upper)[1], "cholesky")
    return _cholesky(input, upper)


def _cholesky_solve_gradients(grads: Any, needs: Any, result: Any, input2: Any, upper: bool) -> list[Any]:
    grad = grads[0]
    if grad is None:
        return [None, None]
    of_right = _cholesky_solve(grad, input2, upper)
    of_factor = None
    if needs[1]:
        common = of_right @ hermitian(result)
        common = common + hermitian(common)
        of_factor = -(input2 @ common) if upper else -(common @ input2)
    return [of_right, of_factor]


@primitive("CholeskySolveBackward0", axes=MATRICES, joint=_cholesky_solve_gradients)
def _cholesky_solve(self: Array, input2: Array, upper: bool) -> Array:
    adjoint = input2.swapaxes(-1, -2).conj()
    first, second = (adjoint, input2) if upper else (input2, adjoint)
    return column_major(solve_triangle(second, solve_triangle(first, self, False, False), True, False))


@public(out=write_packed, autocast=on(cpu=FULL))
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """The solution X of A X = B, where L is the Cholesky factor of A."""
    if input._array.ndim < 2:
        raise RuntimeError(f"b should have at least 2 dimensions, but has {input._array.ndim} dimensions instead")
    if input2._array.ndim < 2:
        raise RuntimeError(f"u should have at least 2 dimensions, but has {input2._array.ndim} dimensions instead")
    check_square("cholesky_solve", input2)
    check_same_dtype("cholesky_solve", input, input2)
    if input._array.shape[-2] != input2._array.shape[-2]:
        rows, columns = input._array.shape[-2:]
        size = input2._array.shape[-1]
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {size} by {size} but each b matrix is "
            f"{rows} by {columns}"
        )
    check_pair("cholesky_solve", input2, input, True)
    check_floating("cholesky_solve", input2, "cholesky_solve_cpu")
    return _cholesky_solve(input, input2, upper)


def _cholesky_inverse_gradient(grad: Tensor, self: Tensor, result: Tensor, upper: bool) -> Tensor:
    common = grad + hermitian(grad)
    common = result @ (common @ result)
    return -(self @ common) if upper else -(common @ self)


@primitive("CholeskyInverseBackward0", axes=MATRICES, self=_cholesky_inverse_gradient)
def _cholesky_inverse(self: Array, upper: bool) -> Array:
    identity = np.broadcast_to(np.eye(self.shape[-1], dtype=self.dtype, like=self), self.shape)
    inverse = solve_triangle(self, identity, upper, False)
    adjoint = inverse.swapaxes(-1, -2).conj()
    return column_major(np.matmul(inverse, adjoint) if upper else np.matmul(adjoint, inverse))


@public(out=write_out, autocast=on(cpu=FULL))
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A, where L is the Cholesky factor of A."""
    check_square("cholesky_inverse", input)
    check_kernel("cholesky_inverse_out_cpu", input)
    check_diagonal(input, "cholesky_inverse")
    return _cholesky_inverse(input, upper)
