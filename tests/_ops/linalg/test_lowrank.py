"""Singular values and principal components of low rank, from random vectors, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau
from tests.support.differential import differential, outcome


def _matrix(T: Any, *shape: int) -> Any:
    random = np.random.default_rng(4)
    *batch, rows, columns = shape
    values = random.normal(size=(*batch, rows, 2)) @ random.normal(size=(*batch, 2, columns))
    return T.from_numpy(values).requires_grad_()


@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (2, 6, 5)])
@differential(tolerance=1e-2)  # 1e-8 for float64
def test_what_the_factors_make(T: Any, shape: tuple[int, ...]) -> Any:
    A = _matrix(T, *shape)
    observed = []
    for U, S, V in (
        T.svd_lowrank(A, 2),
        T.svd_lowrank(A, q=2, niter=1, M=A.detach() * 0.5),
        T.pca_lowrank(A, 2, False),
    ):
        product = (U * S.unsqueeze(-2)) @ V.mT
        grad = T.autograd.grad((product * product.detach().exp()).sum(), A)[0]
        observed.append((product.detach().contiguous(), S.detach(), (U.shape, V.shape), grad.contiguous()))
    values = T.pca_lowrank(A.detach() + T.arange(shape[-1]))[1][..., :2]  # the others are rounding errors
    return observed, values.contiguous()


def test_the_result_approximates() -> None:
    A = _matrix(flambeau, 9, 8).detach()
    U, S, V = flambeau.svd_lowrank(A, 3)
    flambeau.testing.assert_close((U * S) @ V.mT, A)


@pytest.mark.parametrize("call", ["q=5", "q=-1", "niter=-1"])
@differential
def test_errors(T: Any, call: str) -> Any:
    return outcome(lambda: eval(f"T.pca_lowrank(T.ones(3, 4), {call})", {"T": T}), "must be non-negative integer")
