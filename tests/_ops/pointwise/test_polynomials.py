"""Orthogonal polynomials: values against SciPy, degrees, special points and dtypes as in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import flambeau

from ...support.differential import differential, outcome

CHEBYSHEV = [f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"]
OTHERS = ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]
REFERENCES: dict[str, Callable[[Any, Any], Any]] = {
    "chebyshev_polynomial_t": scipy.special.eval_chebyt,
    "chebyshev_polynomial_u": scipy.special.eval_chebyu,
    "shifted_chebyshev_polynomial_t": scipy.special.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": scipy.special.eval_sh_chebyu,
    "hermite_polynomial_h": scipy.special.eval_hermite,
    "hermite_polynomial_he": scipy.special.eval_hermitenorm,
    "laguerre_polynomial_l": scipy.special.eval_laguerre,
    "legendre_polynomial_p": scipy.special.eval_legendre,
}


@pytest.mark.parametrize("name", REFERENCES)
def test_accuracy(name: str) -> None:
    x = np.linspace(-1.5, 2.5, 401)
    n = np.array([0, 1, 2, 3, 6, 7, 8, 15, 30])[:, None]
    expected = REFERENCES[name](n, x)
    actual = getattr(flambeau.special, name)(flambeau.from_numpy(x), flambeau.from_numpy(n)).numpy()
    scale = np.maximum(np.abs(expected), np.median(np.abs(expected), axis=1, keepdims=True))
    assert (np.abs(actual - expected) <= 2e-13 * scale).all()


@pytest.mark.parametrize("name", CHEBYSHEV + OTHERS)
@differential
def test_degrees_and_special_points(T: Any, name: str) -> Any:
    f = getattr(T.special, name)
    degrees = T.tensor([-3.0, -1.0, -0.5, 0.0, 1.0, 1.7, 2.0, 3.0, 6.0, 6.5, 9.0, 20.0, 21.0], dtype=T.float64)
    points = T.tensor([1.0, -1.0, 0.0, 0.25, -0.75, 0.9, 2.0, -2.0], dtype=T.float64)
    return (
        f(points, degrees[:, None]).abs().clamp(min=1e-9),  # zeros are rounded differently
        f(T.tensor([math.inf, -math.inf]), 3),
        f(T.tensor([math.nan]), 1),
        f(T.tensor([2.0, -3.0], dtype=T.float64), T.tensor([[50], [400], [900]])),
    )


@pytest.mark.parametrize("name", CHEBYSHEV + OTHERS)
@differential
def test_operands(T: Any, name: str) -> Any:
    f = getattr(T.special, name)
    x = T.linspace(-0.95, 1.55, 12).reshape(3, 4)
    n = T.tensor([0, 2, 3, 5])
    return (
        f(x, n),
        f(x.t(), 3),
        f(x=x, n=2.0),
        f(0.5, n),
        f(x, n.double()),
        f(T.tensor([1, 3]), T.tensor([2, 1])),
        f(T.tensor(0.5), T.tensor(2)),
        f(T.empty(0, 4), n),
        f(x, n, out=T.empty(0)),
        f(x.to("meta"), n.to("meta")),
        f(x.requires_grad_(), 2),
        outcome(lambda: f(x, T.ones(3)), "must match the size of tensor b (3)"),
        outcome(lambda: f(x, n, out=T.empty(0, dtype=T.int64)), "can't be cast to the desired output type Long"),
        outcome(lambda: f(x.to(T.complex64), n), "not implemented for 'ComplexFloat'"),
        outcome(lambda: f(1.0, 2)),
        outcome(lambda: f(x, "2")),
    )


def test_what_pytorch_leaves_undefined() -> None:
    result = flambeau.special.legendre_polynomial_p(flambeau.tensor([math.nan, 0.5]), flambeau.tensor([3.0, math.inf]))
    assert result.isnan().all()
