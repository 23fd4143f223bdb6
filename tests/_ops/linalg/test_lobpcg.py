"""`lobpcg`: eigenvalues by iteration, beside PyTorch's and beside whole decompositions."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome


def symmetric(T: Any, *shape: int) -> Any:
    T.manual_seed(3)
    matrix = T.randn(*shape, dtype=T.float64)
    return matrix + matrix.mT


@differential(tolerance=1e-5)
def test_values(T: Any) -> Any:
    A = symmetric(T, 20, 20)
    B = T.eye(20, dtype=T.float64) * T.arange(1.0, 21.0, dtype=T.float64)
    pairs = [
        T.lobpcg(A, k=3),
        T.lobpcg(A, k=2, largest=False, method="basic"),
        T.lobpcg(A, k=2, B=B, niter=200),
        T.lobpcg(A, X=T.randn(20, 2, dtype=T.float64), iK=T.eye(20, dtype=T.float64)),
        T.lobpcg(symmetric(T, 2, 12, 12), k=2),
        T.lobpcg(A.float().to_sparse_coo(), k=2),
    ]
    return (
        [values for values, _ in pairs],
        [tuple(vectors.shape) for _, vectors in pairs],
        outcome(lambda: T.lobpcg(A, k=7), "is smaller than 3 x the number"),
    )


def test_vectors_and_steps() -> None:
    A = symmetric(flambeau, 20, 20)
    seen: list[tuple[int, int]] = []
    values, vectors = flambeau.lobpcg(
        A, k=3, tracker=lambda worker: seen.append((worker.ivars["istep"], worker.ivars["converged_count"]))
    )
    assert (A @ vectors - vectors * values).norm() < 1e-5
    assert [step for step, _ in seen] == list(range(len(seen)))
    assert seen[-1][1] == 3
    assert seen[0][1] < 3


@pytest.mark.parametrize("largest", [True, False])
def test_gradients(largest: bool) -> None:
    A = symmetric(flambeau, 6, 6).requires_grad_()

    def projector(matrix: Any) -> Any:
        values, vectors = flambeau.lobpcg((matrix + matrix.mT) / 2, k=2, largest=largest, tol=1e-9)
        return values, vectors @ vectors.mT

    assert flambeau.autograd.gradcheck(projector, (A,), eps=1e-5, atol=1e-3)
