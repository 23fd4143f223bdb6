"""LDL factors of symmetric and Hermitian matrices, and solving with them, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau
from tests.support.differential import differential, outcome


def _matrices(is_complex: bool) -> Any:
    """Indefinite matrices: some need pivots of two rows, some have zeros on the diagonal."""
    random = np.random.default_rng(11)
    values = random.normal(size=(8, 6, 6))
    values = values + 1j * random.normal(size=(8, 6, 6)) if is_complex else values
    diagonal = np.arange(6)
    values[:4, diagonal, diagonal] *= 0.01
    values[0, diagonal, diagonal] = 0
    return values


@pytest.mark.parametrize(("is_complex", "is_hermitian"), [(False, False), (True, False), (True, True)])
@differential(tolerance=1e-3)  # 1e-9 for float64
def test_factors_and_solutions(T: Any, is_complex: bool, is_hermitian: bool) -> Any:
    A = T.from_numpy(_matrices(is_complex))
    packed, pivots = result = T.linalg.ldl_factor(A, hermitian=is_hermitian)
    right = T.from_numpy(_matrices(is_complex)[..., :2].copy())
    return (
        type(result).__name__,
        (packed, pivots),
        T.linalg.ldl_solve(packed, pivots, right, hermitian=is_hermitian),
        T.linalg.ldl_solve(packed[0], pivots[0], right, hermitian=is_hermitian),
        T.linalg.ldl_factor_ex(A[3], hermitian=is_hermitian),
    )


@pytest.mark.parametrize("is_hermitian", [False, True])
def test_the_solution_solves(is_hermitian: bool) -> None:
    A = flambeau.from_numpy(_matrices(True))
    A = A + (A.mH if is_hermitian else A.mT)
    B = A[..., :2] + 1
    X = flambeau.linalg.ldl_solve(*flambeau.linalg.ldl_factor(A, hermitian=is_hermitian), B, hermitian=is_hermitian)
    flambeau.testing.assert_close(A @ X, B)


@differential
def test_singular_matrices_and_other_edges(T: Any) -> Any:
    matrices = T.stack([T.zeros(3, 3), T.eye(3), T.ones(3, 3)])
    leaf = T.eye(2).requires_grad_()
    out = T.empty(0)
    same = T.linalg.ldl_solve(T.eye(2), T.tensor([1, 2]), T.ones(2, 3), out=out) is out
    return (
        T.linalg.ldl_factor_ex(matrices),
        T.linalg.ldl_factor(T.ones(0, 0)),
        T.linalg.ldl_factor_ex(leaf).LD,
        (same, out),
        [each.shape for each in T.linalg.ldl_factor(T.empty(2, 3, 3, device="meta"))],
        T.linalg.ldl_solve(T.ones(3, 3).to("meta"), T.ones(3).int().to("meta"), T.ones(2, 3, 1).to("meta")).shape,
    )


ERRORS = [
    ("T.linalg.ldl_factor(T.ones(4))", "must have at least 2 dimensions"),
    ("T.linalg.ldl_factor(T.ones(4, 3))", "A must be batches of square matrices, but they are 4 by 3 matrices"),
    ("T.linalg.ldl_factor(T.ones(3, 3).half())", "\"ldl_factor_kernel_cpu\" not implemented for 'Half'"),
    ("T.linalg.ldl_factor(T.ones(3, 3).long())", "Expected a floating point or complex tensor as input. Got Long"),
    ("T.linalg.ldl_factor(T.zeros(3, 3))", "torch.linalg.ldl_factor: "),
    ("T.linalg.ldl_solve(T.eye(4), P, T.ones(4))", "Dimension out of range"),
    ("T.linalg.ldl_solve(T.eye(4), P, T.ones(3, 2))", "each A matrix is 4 by 4 but each b matrix is 3 by 2"),
    ("T.linalg.ldl_solve(T.eye(4), P.float(), T.ones(4, 2))", "Expected pivots to be integers. Got Float"),
    ("T.linalg.ldl_solve(T.eye(4), P[:3], T.ones(4, 2))", "Expected LD.shape[:-1] and pivots.shape to be the same"),
    ("T.linalg.ldl_solve(T.eye(4), P, T.ones(4, 2).double())", "Expected b and A to have the same dtype"),
]


@pytest.mark.parametrize(("expression", "phrase"), ERRORS)
@differential
def test_errors(T: Any, expression: str, phrase: str) -> Any:
    return outcome(lambda: eval(expression, {"T": T, "P": T.arange(1, 5, dtype=T.int32)}), phrase)
