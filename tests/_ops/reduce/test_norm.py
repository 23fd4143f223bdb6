"""Norms of vectors and matrices, distances, renormalisation, as in PyTorch."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ...support.differential import differential, outcome

ORDERS = [0, 0.5, 1, 1.5, 2, 3, -1, math.inf, -math.inf]


def matrix(T: Any, dtype: str = "float64") -> Any:
    return T.tensor([[3.0, -4.0, 1.0], [2.0, 0.5, -2.0]]).to(getattr(T, dtype))


@pytest.mark.parametrize("ord", ORDERS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
@differential
def test_vector_norms(T: Any, ord: float, dtype: str) -> Any:
    x = matrix(T, dtype)
    op = T.linalg.vector_norm
    return op(x, ord), op(x.T, ord, dim=0), op(x, ord, dim=(0, 1), keepdim=True), op(x[0, 0], ord), x.norm(ord, 1)


@pytest.mark.parametrize("ord", ORDERS[1:])
@differential
def test_derivatives(T: Any, ord: float) -> Any:
    x = matrix(T).requires_grad_()
    value = x.norm(ord, dim=1)
    (grad,) = T.autograd.grad((value**2).sum(), x, create_graph=True)
    return value, grad.detach(), *T.autograd.grad((grad**2).sum(), x)


@pytest.mark.parametrize("ord", [0.5, 1, 1.5, 2, 3, math.inf])
@differential
def test_subgradient_at_zero(T: Any, ord: float) -> Any:
    x = T.zeros(3, dtype=T.float64, requires_grad=True)
    return T.autograd.grad(T.linalg.vector_norm(x, ord), x)


@pytest.mark.parametrize("ord", ["fro", 1, -1, math.inf, -math.inf])
@differential
def test_matrix_norms(T: Any, ord: Any) -> Any:
    x = T.stack([matrix(T), matrix(T) + 1]).requires_grad_()
    value = T.linalg.matrix_norm(x, ord)
    kept = T.linalg.norm(x, ord, dim=(2, 0), keepdim=True)
    return value, kept, *T.autograd.grad(value.sum() + kept.sum(), x)


@differential
def test_norm_of_linalg(T: Any) -> Any:
    x = matrix(T)
    return (
        T.linalg.norm(x),
        T.linalg.norm(x, 1),
        T.linalg.norm(x, 3, dim=0),
        T.linalg.norm(x[0], 0),
        x.norm(),
        x.norm("fro"),
    )


@pytest.mark.parametrize("p", [1, 2, 3.0, math.inf])
@differential
def test_dist(T: Any, p: float) -> Any:
    x, y = matrix(T).requires_grad_(), T.tensor([1.0, 2.0, 3.0], dtype=T.float64, requires_grad=True)
    value = x.dist(y, p)
    return value, *T.autograd.grad(value, (x, y))


@pytest.mark.parametrize("p", [1, 2, 3.0])
@differential
def test_renorm(T: Any, p: float) -> Any:
    x = matrix(T).requires_grad_()
    value = x.renorm(p, 1, 3.5)
    (grad,) = T.autograd.grad((value**2).sum(), x, create_graph=True)
    return value, grad.detach(), *T.autograd.grad((grad**2).sum(), x), matrix(T).renorm_(p, 0, 1.0)


@differential
def test_errors(T: Any) -> Any:
    x = matrix(T, "float32")
    return (
        outcome(lambda: x.long().norm(), "Expected a floating point or complex tensor"),
        outcome(lambda: T.linalg.vector_norm(x[:0], math.inf), "does not have an identity"),
        outcome(lambda: T.linalg.matrix_norm(x[0]), "at least 2 dimensions"),
        outcome(lambda: T.linalg.matrix_norm(x, "other"), "not supported"),
        outcome(lambda: T.linalg.norm(T.ones(2, 2, 2), 1), "must be 1D or 2D"),
        outcome(lambda: x.renorm(2, 0, -1.0), "expected maxnorm to be >= 0"),
        outcome(lambda: x[0].renorm(2, 0, 1.0), "at least 2 dimensions"),
        outcome(lambda: x.dist(T.ones(2)), "must match the size"),
        outcome(lambda: T.linalg.vector_norm(x, dim=0, out=T.empty(3, dtype=T.float64)), "Expected out tensor to have"),
    )
