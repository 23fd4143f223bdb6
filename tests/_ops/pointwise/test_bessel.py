"""Bessel functions and the Airy function: accuracy against SciPy, special points and dtypes as in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import flambeau

from ...support.differential import differential, outcome

REFERENCES: dict[str, Callable[[Any], Any]] = {
    "bessel_j0": scipy.special.j0,
    "bessel_j1": scipy.special.j1,
    "bessel_y0": scipy.special.y0,
    "bessel_y1": scipy.special.y1,
    "modified_bessel_i0": scipy.special.i0,
    "modified_bessel_i1": scipy.special.i1,
    "modified_bessel_k0": scipy.special.k0,
    "modified_bessel_k1": scipy.special.k1,
    "scaled_modified_bessel_k0": scipy.special.k0e,
    "scaled_modified_bessel_k1": scipy.special.k1e,
    "spherical_bessel_j0": lambda x: scipy.special.spherical_jn(0, x),
    "airy_ai": lambda x: scipy.special.airy(x)[0],
}
NAMES = sorted(REFERENCES)
OSCILLATING = ("bessel", "spherical")
OF_POSITIVE = tuple(name for name in NAMES if "_k" in name or "_y" in name)


@pytest.mark.parametrize("name", NAMES)
def test_accuracy(name: str) -> None:
    x = np.concatenate([np.linspace(0.001, 9, 3001), np.geomspace(1e-9, 100, 2001)])
    if name not in OF_POSITIVE:
        x = np.concatenate([x, -x[x < 30]])
    expected = REFERENCES[name](x)
    actual = getattr(flambeau.special, name)(flambeau.from_numpy(x)).numpy()
    floor = 1.0 if name.startswith(OSCILLATING) else 0.0
    scale = np.maximum(np.abs(expected), np.where(x < 0, 1.0, floor))
    tolerance = 2e-13 if name == "airy_ai" else 4e-15  # exp(-z) magnifies the error of z, 1 ulp of up to 667
    assert (np.abs(actual - expected) <= tolerance * scale).all()


@pytest.mark.parametrize("name", NAMES)
@differential
def test_special_points_and_dtypes(T: Any, name: str) -> Any:
    f = getattr(T.special, name)
    points = [0.0, math.inf, -math.inf, math.nan, 1e-30, 1.0, 2.0, -1.5, -20.0, 800.0]
    x = T.linspace(0.5, 12, 24).reshape(4, 6)
    return (
        f(T.tensor(points, dtype=T.float64)),
        f(x.t()),
        f(x[:, ::2]),
        f(T.tensor(2.5)),
        f(T.tensor([1, 3])),
        f(T.tensor([True])),
        f(T.empty(0, 2)),
        f(x, out=T.empty(0)),
        f(x.to("meta")),
        f(x.requires_grad_()),
        outcome(lambda: f(x, out=T.empty(0, dtype=T.int64)), "can't be cast to the desired output type Long"),
        outcome(lambda: f(T.ones(2, dtype=T.complex64)), "not implemented for 'ComplexFloat'"),
        outcome(lambda: f(1.0), "must be Tensor, not float"),
    )


@differential
def test_argument_names(T: Any) -> Any:
    x = T.tensor([0.5, 2.0])
    return (
        T.special.bessel_j0(input=x),
        T.special.airy_ai(x=x),
        outcome(lambda: T.special.airy_ai(input=x)),
        hasattr(T, "airy_ai") or hasattr(T.Tensor, "airy_ai"),
    )
