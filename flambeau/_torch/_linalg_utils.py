"""Products that know sparse matrices, under the names of `torch._linalg_utils`."""

from __future__ import annotations

import flambeau as torch
from flambeau._core.tensor import Tensor
from flambeau._ops.sparse.matmul import sparse_mm


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """`A @ B`, of which A may be sparse or missing."""
    if A is None:
        return B
    if A.layout is not torch.strided:
        return sparse_mm(A, B)
    return torch.matmul(A, B)


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """`X.mT @ A @ Y`."""
    return matmul(X.mT, matmul(A, Y))


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """`S.mT @ A @ S`."""
    return bform(S, A, S)


def basis(A: Tensor) -> Tensor:
    """An orthogonal basis of the columns."""
    found: Tensor = torch.linalg.qr(A).Q
    return found


def symeig(A: Tensor, largest: bool | None = False) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of a symmetric matrix, the largest first if asked for."""
    values, vectors = torch.linalg.eigh(A, UPLO="U")
    return (values.flip(-1), vectors.flip(-1)) if largest else (values, vectors)


def is_sparse(A: object) -> bool:
    """Whether a value is a sparse tensor."""
    if isinstance(A, Tensor):
        return A.layout is torch.sparse_coo
    raise TypeError(f"expected Tensor but got {type(A)}")
