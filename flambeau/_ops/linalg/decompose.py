"""Factorisations of matrices (QR, singular values, eigenvalues), and what is made of them."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from ..._backends import lapack
from ..._core.arrays.lazy_signs import content, every_element
from ..._core.backend import as_array, beside, read
from ..._core.dtype import LEGACY_NAMES, int64
from ..._core.modes import THREAD
from ..._core.process.caller import warn_of_old_name
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL, lower_result, on
from ..._dispatch.axes import MATRICES
from ..._dispatch.dispatch import Array, primitive, several
from ..._dispatch.gradients.needed import needs_gradient
from ..._dispatch.gradients.undifferentiable import refuse_gradients
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from ..._dispatch.public.return_types import named, return_type
from ..pointwise.binary import conj
from ..reduce.norm import matrix_norm
from .checks import (
    LinAlgError,
    by_columns,
    check_floating,
    check_kernel,
    check_matrix,
    check_precise,
    check_square,
    column_major,
    row_major,
)
from .matmul import hermitian
from .systems import _identity, _inv_ex, _solve_matrix, _solve_triangular

LINALG_QR = return_type("linalg_qr", ("Q", "R"))
QR = return_type("qr", ("Q", "R"))
LINALG_SVD = return_type("linalg_svd", ("U", "S", "Vh"))
SVD = return_type("svd", ("U", "S", "V"))
LINALG_EIGH = return_type("linalg_eigh", ("eigenvalues", "eigenvectors"))
LINALG_EIG = return_type("linalg_eig", ("eigenvalues", "eigenvectors"))
LSTSQ = return_type("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"))


def _needs_vectors(tensor: Tensor) -> bool:
    """Whether values alone do not do: their derivatives are made of the vectors."""
    return THREAD.modes.forward_level >= 0 or needs_gradient(tensor)


def _real(tensor: Any) -> Any:
    return tensor.real if tensor.is_complex() else tensor


# ----- QR -----------------------------------------------------------------------------------------------------------


def _qr_gradient(grads: Any, needs: Any, Q: Any, R: Any, mode: str) -> list[Any]:
    of_q, of_r = grads
    rows, columns = Q._array.shape[-2] if mode != "r" else -1, R._array.shape[-1]
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to require gradients through linalg.qr."
        )
    if mode == "complete" and rows > columns:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols. A is "
            f"{rows} by {columns}."
        )
    if of_q is None and of_r is None:
        return [None]
    if rows >= columns:
        return [_tall_qr_gradient(of_q, of_r, Q, R)]
    # The columns beyond the first square are R's alone: Q^H times them.
    square, rest = R[..., :rows], R[..., rows:]
    of_square = of_rest = None
    if of_r is not None:
        of_square = of_r[..., :rows]
        beyond = of_r[..., rows:]
        of_rest = Q @ beyond
        through = (Q @ rest) @ hermitian(beyond)
        of_q = through if of_q is None else of_q + through
    first = _tall_qr_gradient(of_q, of_square, Q, square)
    from ..shape.join import cat

    return [cat([first, rest * 0 if of_rest is None else of_rest], -1)]


def _tall_qr_gradient(of_q: Any, of_r: Any, Q: Any, R: Any) -> Tensor:
    middle: Any = 0 if of_r is None else of_r @ hermitian(R)
    if of_q is not None:
        middle = middle - hermitian(Q) @ of_q
    upper = middle.triu()
    both = upper + hermitian(upper)
    both = both - _on_diagonal(_real(upper.diagonal(0, -2, -1)), both)
    total = Q @ both
    if of_q is not None:
        total = of_q + total
    return _solve_triangular(hermitian(R), total, False, False, False)


def _on_diagonal(values: Any, like: Any) -> Any:
    """Matrices with `values` on their diagonals, in the dtype of `like`."""
    return values.diag_embed().to(like.dtype)


@several("LinalgQrBackward0", axes=MATRICES, joint=_qr_gradient, results=("Q", "R"))
def _qr(A: Array, mode: Any) -> Any:
    if mode == "r":
        return np.empty(0, A.dtype, like=A), by_columns(lapack.qr(A, "r"))
    Q, R = lapack.qr(A, mode)
    return by_columns(Q), by_columns(R)


def _checked_qr(A: Tensor, mode: str) -> tuple[Tensor, ...]:
    check_matrix("linalg.qr", A)
    check_floating("linalg.qr", A, "geqrf_cpu")
    if mode not in ("reduced", "r", "complete"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    return _qr(A, mode)


@public("linalg.qr", function=False, method=False, out=True, autocast=on(cpu=FULL))
def linalg_qr(A: Tensor, mode: str = "reduced") -> Any:
    """A = Q R with orthonormal columns in Q and an upper triangular R."""
    return named(LINALG_QR, _checked_qr(A, mode))


@public(out=True, autocast=on(cpu=FULL))
def qr(input: Tensor, some: bool = True) -> Any:
    """`linalg.qr` under its old name; with `some=False` Q is square."""
    warn_of_old_name("qr", "linalg.qr")
    return named(QR, _checked_qr(input, "reduced" if some else "complete"))


# ----- singular values ----------------------------------------------------------------------------------------------


def _skew(matrix: Any) -> Any:
    return matrix - hermitian(matrix)


def _differences(values: Any) -> Any:
    """E[i, j] = values[j] - values[i], with ones on the diagonal."""
    apart = values.unsqueeze(-2) - values.unsqueeze(-1)
    return apart + _identity(apart)


_PHASE_TOLERANCE = 1e-2


def _refuse_phase(name: str, what: str, diagonal: Tensor) -> None:
    """Complex vectors are unique up to a phase: a function of them that depends on it has no derivative."""
    if diagonal._kind.dataless or diagonal._is_wrapper:  # PyTorch does not look at examples either
        return
    if read(np.abs(diagonal._array).max(initial=0) > _PHASE_TOLERANCE):
        raise RuntimeError(
            f"{name}: The {what} in the complex case are specified up to multiplication by e^{{i phi}}. The specified "
            "loss function depends on this quantity, so it is ill-defined."
        )


def _svd_gradient(grads: Any, needs: Any, U: Any, S: Any, Vh: Any, full_matrices: bool) -> list[Any]:
    of_u, of_s, of_vh = grads
    count = S._array.shape[-1]
    rows, columns = U._array.shape[-2], Vh._array.shape[-1]
    if full_matrices:
        U, Vh = U[..., :count], Vh[..., :count, :]
        of_u = None if of_u is None else of_u[..., :count]
        of_vh = None if of_vh is None else of_vh[..., :count, :]
    if of_u is None and of_vh is None:
        if of_s is None:
            return [None]
        return [(U * of_s.to(U.dtype).unsqueeze(-2)) @ Vh if rows >= columns else U @ (of_s.unsqueeze(-1) * Vh)]
    turn_u = None if of_u is None else hermitian(U) @ of_u
    turn_v = None if of_vh is None else Vh @ hermitian(of_vh)
    if U.is_complex():
        phases = sum(each.diagonal(0, -2, -1).imag for each in (turn_u, turn_v) if each is not None)
        _refuse_phase("svd_backward", "singular vectors", phases)
    gaps = _differences(S * S)
    middle = 0
    if turn_u is not None:
        middle = middle + (_skew(turn_u) / gaps) * S.unsqueeze(-2)
        if U.is_complex():
            middle = middle + _on_diagonal(turn_u.diagonal(0, -2, -1).imag / S, U) * 1j
    if turn_v is not None:
        middle = middle + S.unsqueeze(-1) * (_skew(turn_v) / gaps)
    if of_s is not None:
        middle = middle + _on_diagonal(of_s, U)
    total = U @ middle @ Vh
    if of_u is not None and rows > count:
        scaled = of_u / S.unsqueeze(-2)
        total = total + (scaled - U @ (hermitian(U) @ scaled)) @ Vh
    if of_vh is not None and columns > count:
        scaled = of_vh / S.unsqueeze(-1)
        total = total + U @ (scaled - (scaled @ hermitian(Vh)) @ Vh)
    return [total]


def _raise_diverged(name: str, A: Array) -> NoReturn:
    values = "eigenvalues" if name == "linalg.eigh" else "singular values"
    if values == "singular values" and not read(np.isfinite(A).all()):
        raise LinAlgError(
            f"{name}: The algorithm failed to converge because the input matrix contained non-finite values."
        )
    raise LinAlgError(
        f"{name}: The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
        f"repeated {values}."
    )


@several("LinalgSvdBackward0", axes=MATRICES, joint=_svd_gradient, results=("U", "S", "Vh"))
def _svd(A: Array, full_matrices: bool) -> Any:
    try:
        U, S, Vh = lapack.svd(A, full_matrices)
    except np.linalg.LinAlgError:
        _raise_diverged("linalg.svd", A)
    return column_major(U), S, column_major(Vh)


@primitive(None, axes=MATRICES)
def _svdvals(A: Array) -> Array:
    try:
        return lapack.svdvals(A)
    except np.linalg.LinAlgError:
        _raise_diverged("linalg.svd", A)


_DRIVERS = "argument `driver` is only supported on CUDA inputs with cuSOLVER"


def _check_svd(A: Tensor, driver: str | None) -> None:
    check_matrix("linalg.svd", A)
    check_floating("linalg.svd", A, "linalg_svd_cpu")
    if driver is not None:
        raise RuntimeError(f"torch.linalg.svd: keyword {_DRIVERS}, but got driver={driver!r} on {A.device}")


@public("linalg.svd", function=False, method=False, out=True, autocast=on(cpu=FULL))
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """A = U diag(S) Vh with orthonormal columns in U and rows in Vh; S descends."""
    _check_svd(A, driver)
    return named(LINALG_SVD, _svd(A, bool(full_matrices)))


@public("linalg.svdvals", function=False, method=False, out=True, autocast=on(cpu=FULL))
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, in descending order."""
    _check_svd(A, driver)
    return _svd(A, False)[1] if _needs_vectors(A) else _svdvals(A)


@public(out=True, autocast=on(cpu=FULL))
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """`linalg.svd` under its old name: gives V instead of Vh, and by default the reduced form."""
    if input._array.ndim < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {input._array.ndim} dimensions instead"
        )
    if not compute_uv:
        rows, columns = input._array.shape[-2:]
        values = svdvals(input)
        zeros = input.new_zeros
        batch = input._array.shape[:-2]
        return named(SVD, (zeros((*batch, rows, rows)), values, zeros((*batch, columns, columns)).transpose(-2, -1)))
    _check_svd(input, None)
    U, S, Vh = _svd(input, not some)
    return named(SVD, (U, S, hermitian(Vh)))


# ----- eigenvalues --------------------------------------------------------------------------------------------------


def _eigh_gradient(grads: Any, needs: Any, eigenvalues: Any, eigenvectors: Any) -> list[Any]:
    of_values, of_vectors = grads
    if of_values is None and of_vectors is None:
        return [None]
    if of_vectors is None:
        return [(eigenvectors * of_values.unsqueeze(-2)) @ hermitian(eigenvectors)]
    turn = hermitian(eigenvectors) @ of_vectors
    if turn.is_complex():
        _refuse_phase("linalg_eigh_backward", "eigenvectors", turn.diagonal(0, -2, -1).imag)
    middle = 0.5 * _skew(turn) / _differences(eigenvalues)
    middle = middle - middle.diagonal(0, -2, -1).diag_embed()
    if of_values is not None:
        middle = middle + _on_diagonal(of_values, middle)
    return [eigenvectors @ (middle @ hermitian(eigenvectors))]


@several("LinalgEighBackward0", axes=MATRICES, joint=_eigh_gradient, results=("eigenvalues", "eigenvectors"))
def _eigh(A: Array, UPLO: Any) -> Any:
    try:
        values, vectors = lapack.eigh(A, UPLO)
    except np.linalg.LinAlgError:
        _raise_diverged("linalg.eigh", A)
    return values, column_major(vectors)


@primitive(None, axes=MATRICES)
def _eigvalsh(A: Array, UPLO: Any) -> Array:
    try:
        return lapack.eigvalsh(A, UPLO)
    except np.linalg.LinAlgError:
        _raise_diverged("linalg.eigh", A)


def _check_eigh(A: Tensor, UPLO: str) -> str:
    check_square("linalg.eigh", A)
    check_kernel("linalg_eigh_cpu", A)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()


@public("linalg.eigh", function=False, method=False, out=True, autocast=on(cpu=FULL))
def eigh(input: Tensor, UPLO: str = "L") -> Any:
    """The eigenvalues, ascending, and eigenvectors of a Hermitian matrix, of which one triangle is read."""
    return named(LINALG_EIGH, _eigh(input, _check_eigh(input, UPLO)))


@public("linalg.eigvalsh", function=False, method=False, out=True, autocast=on(cpu=FULL))
def eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a Hermitian matrix, in ascending order."""
    triangle = _check_eigh(input, UPLO)
    return _eigh(input, triangle)[0] if _needs_vectors(input) else _eigvalsh(input, triangle)


def _eig_gradient(grads: Any, needs: Any, eigenvalues: Any, eigenvectors: Any) -> list[Any]:
    of_values, of_vectors = grads
    if of_values is None and of_vectors is None:
        return [None]
    adjoint = hermitian(eigenvectors)
    if of_vectors is None:
        return [_solve_matrix(adjoint, of_values.unsqueeze(-1) * adjoint)]
    turn = adjoint @ of_vectors
    diagonal = turn.diagonal(0, -2, -1)
    _refuse_phase("linalg_eig_backward", "eigenvectors", diagonal.imag)
    middle = turn - (adjoint @ eigenvectors) * diagonal.real.unsqueeze(-2)  # eigenvectors keep the length 1
    middle = middle / conj(_differences(eigenvalues))
    middle = middle - middle.diagonal(0, -2, -1).diag_embed()
    if of_values is not None:
        middle = middle + of_values.diag_embed()
    return [_solve_matrix(adjoint, middle @ adjoint)]


@several("LinalgEigBackward0", axes=MATRICES, joint=_eig_gradient, results=("eigenvalues", "eigenvectors"))
def _eig(self: Array) -> Any:
    values, vectors = lapack.eig(self)
    wide = np.result_type(self.dtype, np.complex64)
    return values.astype(wide, copy=False), column_major(vectors.astype(wide, copy=False))


@primitive(None, axes=MATRICES)
def _eigvals(self: Array) -> Array:
    return lapack.eigvals(self).astype(np.result_type(self.dtype, np.complex64), copy=False)


def _check_eig(A: Tensor) -> None:
    check_square("linalg.eig", A)
    check_floating("linalg.eig", A, "linalg_eig_out_cpu")
    if not A._kind.dataless and not read(np.isfinite(every_element(A)).all()):
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")


@public("linalg.eig", function=False, method=False, out=True, autocast=on(cpu=FULL))
def eig(input: Tensor) -> Any:
    """The eigenvalues and eigenvectors, always complex."""
    _check_eig(input)
    return named(LINALG_EIG, _eig(input))


@public("linalg.eigvals", function=False, method=False, out=True, autocast=on(cpu=FULL))
def eigvals(input: Tensor) -> Tensor:
    """The eigenvalues, always complex."""
    _check_eig(input)
    return _eig(input)[0] if _needs_vectors(input) else _eigvals(input)


# ----- pseudo-inverse, least squares, rank, condition ---------------------------------------------------------------


def _pinv_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    adjoint, turned = hermitian(result), hermitian(grad)
    total = -(adjoint @ (grad @ adjoint))
    outside = turned @ result @ adjoint
    total = total + outside - self @ (result @ outside)
    inside = adjoint @ result @ turned
    return total + inside - (inside @ result) @ self


def _thresholds(atol: Any, rtol: Any, A: Array, longer: int | None = None) -> tuple[Any, Any]:
    """The tolerances as arrays beside `A`; `longer`: of the sides of the matrices, if those are not in `A`."""
    if rtol is None:
        # An absolute tolerance stands alone; otherwise rounding errors set the relative one.
        default = float(finfo_of(A).eps) * (max(A.shape[-2:]) if longer is None else longer)
        rtol = default if atol is None else np.where(as_array(atol) > 0, 0.0, default)
    return beside(as_array(0.0 if atol is None else atol), A), beside(as_array(rtol), A)


def finfo_of(array: Array) -> Any:
    """The limits of the real type behind an array's dtype."""
    return np.finfo(array.real.dtype)


@primitive("LinalgPinvBackward0", self=_pinv_gradient)
def _pinv(self: Array, atol: Any, rtol: Any, hermitian: bool) -> Array:
    absolute, relative = _thresholds(atol, rtol, self)
    rows, columns = self.shape[-2:]
    if self.size == 0:
        return np.zeros((*self.shape[:-2], columns, rows), self.dtype, like=self)
    try:
        if hermitian:
            S, U = lapack.eigh(self)
            Vh = U.swapaxes(-1, -2).conj()
        else:
            U, S, Vh = lapack.svd(self, False)
    except np.linalg.LinAlgError:
        _raise_diverged("linalg.svd", self)
    sizes = np.abs(S)
    bound = np.maximum(absolute[..., None], relative[..., None] * sizes.max(-1, keepdims=True))
    inverse = np.where(sizes > bound, 1 / np.where(S == 0, 1, S), 0).astype(S.dtype)
    left = Vh.swapaxes(-1, -2).conj() * inverse[..., None, :]
    return row_major(np.matmul(left, U.swapaxes(-1, -2).conj()))


_ONLY_PRECISE = "This function doesn't handle types other than float and double"


def _refuse_half(name: str, rule: str, A: Tensor) -> None:
    if A._kind.dtype.itemsize == 2:
        raise RuntimeError(f"{rule}: {name} of a tensor of type {LEGACY_NAMES[A._kind.dtype]}")


def _tolerance(value: Any) -> Any:
    """A tolerance as the kernel takes it: a number, or an array of them; examples are for `vmap` to take apart."""
    if not isinstance(value, Tensor) or value._is_wrapper:
        return value
    return content(value.detach())


@public("linalg.pinv", function=False, method=False, out=write_out, autocast=on(cpu=lower_result))
def pinv(input: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """The pseudo-inverse; singular values up to max(atol, rtol * the largest) count as zero."""
    check_matrix("linalg.pinv", input)
    check_floating("linalg.pinv", input)
    _refuse_half("linalg.pinv", "expected a tensor of float, double, cfloat or cdouble types", input)
    if hermitian and input._array.size:
        check_square("linalg.pinv", input)
    if isinstance(atol, Tensor) or isinstance(rtol, Tensor):
        given = {name: each for name, each in (("atol", atol), ("rtol", rtol)) if isinstance(each, Tensor)}
        refuse_gradients("linalg_pinv", **given)
    relative = rtol if rcond is None else rcond
    return _pinv(input, _tolerance(atol), _tolerance(relative), hermitian)


@public(out=False, autocast=on(cpu=FULL))
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """`linalg.pinv` under its old name."""
    return pinv(input, rcond)


def _lstsq_gradients(grads: Any, needs: Any, self: Any, b: Any, solution: Any) -> list[Any]:
    of_solution, of_residuals = grads[:2]
    of_matrix = of_right = None
    if of_solution is not None:
        inverse = pinv(self)
        of_right = hermitian(inverse) @ of_solution
        of_matrix = _pinv_gradient(of_solution @ hermitian(b), self, inverse)
    if of_residuals is not None and of_residuals._array.size:
        error = 2 * of_residuals.unsqueeze(-2) * (self @ solution - b)
        through = error @ hermitian(solution)
        of_matrix = through if of_matrix is None else of_matrix + through
        of_right = -error if of_right is None else of_right - error
    return [of_matrix, of_right]


def _by_orthogonal_factors(A: Array, b: Array, rcond: Any) -> tuple[Array, Array] | None:
    """LAPACK's array with the solution, and the rank; None: the library is another one."""
    if not (type(A) is np.ndarray is type(b)) or not (rcond is None or isinstance(rcond, int | float)):
        return None
    found: tuple[Array, Array] | None = lapack.least_squares(
        A, b, float(finfo_of(A).eps) * max(A.shape[-2:]) if rcond is None else rcond
    )
    return found


def _by_singular_values(A: Array, b: Array, rcond: Any) -> Array:
    """The array with the least-squares solution, by the pseudo-inverse, and the rank."""
    solution = np.matmul(_pinv.kernel(A, None, rcond, False), b)
    *batch, columns, count = solution.shape
    room = np.zeros((*batch, max(A.shape[-2:]), count), A.dtype, like=A)
    room[..., :columns, :] = solution
    return column_major(room)


@several("LinalgLstsqBackward0", joint=_lstsq_gradients, results=("solution", "residuals", "rank", "singular_values"))
def _lstsq(self: Array, b: Array, rcond: Any, driver: str) -> Any:
    rows, columns = self.shape[-2:]
    real = self.real.dtype
    nothing = np.empty(0, real, like=self)
    found = _by_orthogonal_factors(self, b, rcond) if driver in ("gels", "gelsy") else None
    # The solution is the upper part of LAPACK's array, which has room for max(rows, columns) rows.
    room = _by_singular_values(self, b, rcond) if found is None else found[0]
    solution = room[..., :columns, :]
    if driver == "gels":
        rank, values, full = np.empty(0, np.int64, like=self), nothing, True
    elif found is not None:
        rank, values, full = found[1], nothing, True
    else:
        values = lapack.svdvals(self)
        absolute, relative = _thresholds(None, rcond, self)
        bound = np.maximum(absolute, relative * values.max(-1, keepdims=True, initial=0))
        rank = as_array((values > bound).sum(-1)).astype(np.int64, copy=False)
        full = bool(read((rank == columns).all()))
        values = nothing if driver == "gelsy" else values
    residuals = nothing
    if rows > columns and full and driver != "gelsy":
        error = np.matmul(self, solution) - b
        squares = error.real**2 + error.imag**2 if error.dtype.kind == "c" else error**2
        residuals = as_array(squares.sum(-2)).astype(real, copy=False)
    return solution, residuals, rank, values


@public("linalg.lstsq", function=False, method=False, out=write_out, autocast=on(cpu=FULL))
def lstsq(input: Tensor, b: Tensor, rcond: Any = None, *, driver: str | None = None) -> Any:
    """The X that makes the columns of A X - B shortest."""
    for name, each in (("input", input), ("other", b)):
        if each._array.ndim < (2 if name == "input" else 1):
            least = "2 dimensions" if name == "input" else "1 dimension"
            raise RuntimeError(f"torch.linalg.lstsq: {name} must have at least {least}.")
    check_floating("torch.linalg.lstsq", input)
    _refuse_half("linalg.lstsq", _ONLY_PRECISE, input)
    if input._kind.dtype is not b._kind.dtype:
        raise RuntimeError(
            f"torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype {input.dtype} "
            f"and other's dtype {b.dtype}"
        )
    chosen = "gelsy" if driver is None else driver
    if chosen not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), but got {driver}"
        )
    vector = b._array.ndim == 1 or (
        input._array.ndim - 1 == b._array.ndim and b._array.shape == input._array.shape[:-1]
    )
    right = b.unsqueeze(-1) if vector else b
    if right._array.shape[-2] != input._array.shape[-2]:
        raise RuntimeError(
            "torch.linalg.lstsq: input.size(-2) should match other.size(-2), but the shapes are "
            f"{list(input._array.shape)} and {list(b._array.shape)}"
        )
    if isinstance(rcond, Tensor):
        if rcond._array.ndim or rcond.requires_grad:
            raise TypeError(
                "linalg_lstsq(): argument 'rcond' must be float, not Tensor: one number, without a gradient"
            )
        rcond = float(rcond)
    # "gels" takes the matrix to have full rank, and "gelsd" no tolerance of one and more.
    if chosen == "gels" or (chosen == "gelsd" and rcond is not None and rcond >= 1):
        rcond = None
    solution, residuals, rank, values = _lstsq(input, right, rcond, chosen)
    return named(LSTSQ, (solution.squeeze(-1) if vector else solution, residuals, rank, values.detach()))


@public("linalg.matrix_rank", function=False, method=False, out=write_out, autocast=on(cpu=FULL))
def matrix_rank(
    input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values exceed max(atol, rtol * the largest)."""
    check_matrix("torch.linalg.matrix_rank", input, "input")
    check_floating("linalg.matrix_rank", input)
    _refuse_half("linalg.matrix_rank", _ONLY_PRECISE, input)
    if not input._array.size:  # of any shape
        return input.new_zeros(input._array.shape[:-2], dtype=int64)
    if hermitian:
        check_square("linalg.matrix_rank", input)
    detached: Any = input.detach()
    values = abs(eigvalsh(detached)) if hermitian else svdvals(detached)
    absolute, relative = _tolerance(atol), _tolerance(rtol)
    if tol is not None:
        absolute, relative = _tolerance(tol), 0.0
    return _rank(values, absolute, relative, max(input._array.shape[-2:]))


@primitive(None)
def _rank(self: Array, atol: Any, rtol: Any, longer: int) -> Array:
    absolute, relative = _thresholds(atol, rtol, self, longer)
    bound = np.maximum(absolute[..., None], relative[..., None] * self.max(-1, keepdims=True, initial=0))
    return as_array((self > bound).sum(-1)).astype(np.int64, copy=False)


_CONDITION_NORMS = (None, 1, -1, 2, -2, math.inf, -math.inf, "fro", "nuc")


@public("linalg.cond", function=False, method=False, out=write_out, autocast=on(cpu=FULL))
def cond(input: Tensor, p: Any = None) -> Tensor:
    """The condition number: the norm of A times the norm of its inverse."""
    check_matrix("linalg.cond", input)
    if p not in _CONDITION_NORMS:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if not input._array.size:
        if isinstance(p, str):
            check_square(f"linalg.cond(ord={p})", input)
        return input.new_zeros(input._array.shape[:-2], dtype=input.real.dtype)
    if p is None or (not isinstance(p, str) and abs(p) == 2):
        values = svdvals(input)
        largest, smallest = values[..., :1], values[..., -1:]
        return (smallest / largest if p == -2 else largest / smallest).squeeze(-1)
    if input._array.shape[-1] != input._array.shape[-2]:
        check_square(f"linalg.cond(ord={p})", input)
    check_precise("linalg.cond", input)
    inverse, info = _inv_ex(input)
    inverse = inverse.masked_fill((info > 0)[..., None, None], float("inf"))
    result = matrix_norm(input, p) * matrix_norm(inverse, p) if p != "nuc" else _nuclear_cond(input, inverse, info)
    return result.nan_to_num(float("inf"), float("inf"), float("-inf"))


def _nuclear_cond(A: Any, inverse: Any, info: Any) -> Tensor:
    finite = inverse.masked_fill((info > 0)[..., None, None], 0)
    product = matrix_norm(A, "nuc") * matrix_norm(finite, "nuc")
    return product.masked_fill(info > 0, float("inf"))
