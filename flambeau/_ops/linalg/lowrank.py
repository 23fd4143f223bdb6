"""The largest singular values of large matrices, from their action on a few random vectors."""

from __future__ import annotations

from typing import Any

from ..._core.modes import Ruled
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import RULED
from ..._dispatch.public.registry import public
from ..random.draws import randn
from .decompose import linalg_qr, linalg_svd
from .matmul import hermitian

_qr, _svd = Ruled(RULED["linalg.qr"], linalg_qr), Ruled(RULED["linalg.svd"], linalg_svd)


def _range_of(A: Tensor, q: int, niter: int) -> Any:
    """Orthonormal columns that nearly span what A maps to; each of `niter` rounds favours large singular values."""
    basis = _qr(A @ randn(A._array.shape[-1], q, dtype=A.dtype, device=A.device))[0]
    for _ in range(niter):
        basis = _qr(hermitian(A) @ basis)[0]
        basis = _qr(A @ basis)[0]
    return basis


@public(method=False)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> Any:
    """U, S and V of a matrix near A - M of rank `q` at most; random, so that the seed decides the last digits."""
    matrix = A
    if M is not None:
        matrix = matrix - M.broadcast_to(A._array.shape)
    wide = A._array.shape[-2] < A._array.shape[-1]
    if wide:
        matrix = hermitian(matrix)
    basis = _range_of(matrix, 6 if q is None else q, 2 if niter is None else niter)
    left, values, right = _svd(hermitian(basis) @ matrix, False)
    left, right = basis @ left, hermitian(right)
    return (right, values, left) if wide else (left, values, right)


@public(method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """Principal components: `svd_lowrank` of A less the mean of its rows, or with `center=False` of A."""
    rows, columns = A._array.shape[-2:]
    if q is None:
        q = min(6, rows, columns)
    elif not 0 <= q <= min(rows, columns):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(rows, columns)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    matrix = A
    if center:
        matrix = matrix - matrix.mean(-2, keepdim=True)
    return svd_lowrank(matrix, q, niter)
