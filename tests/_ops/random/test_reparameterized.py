"""Derivatives of random numbers by the parameters of their distributions, against differences of the distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

import flambeau


def gamma_by_differences(shape: Any, sample: Any) -> Any:
    """How the quantile moves with the shape, at the place in the unit interval that the sample has."""
    step = 1e-4 * shape
    tail = sample > shape
    ahead, behind = (
        np.where(
            tail,
            special.gammainccinv(shape + move, special.gammaincc(shape, sample)),
            special.gammaincinv(shape + move, special.gammainc(shape, sample)),
        )
        for move in (step, -step)
    )
    return (ahead - behind) / (2 * step)


@pytest.mark.parametrize("shape", [0.05, 0.4, 1.0, 3.0, 20.0, 900.0])
def test_gamma(shape: float) -> None:
    samples = special.gammaincinv(shape, np.array([0.3, 0.5, 0.9, 0.999]))
    samples = samples[samples > 1e-9]
    found = flambeau._standard_gamma_grad(flambeau.full((len(samples),), shape).double(), flambeau.from_numpy(samples))
    np.testing.assert_allclose(found.numpy(), gamma_by_differences(float(np.float32(shape)), samples), rtol=1e-6)


@pytest.mark.parametrize("first", [0.3, 1.0, 4.0, 300.0])
@pytest.mark.parametrize("second", [0.2, 1.0, 50.0])
def test_beta(first: float, second: float) -> None:
    places = np.array([0.2, 0.5, 0.8])
    samples = special.betaincinv(first, second, places)
    samples = np.append(samples[(samples > 1e-9) & (samples < 1 - 1e-6)], [0.05, 0.4])
    places = special.betainc(first, second, samples)
    keep = (places > 1e-6) & (places < 1 - 1e-6)
    samples, places = samples[keep], places[keep]
    step = 1e-4 * first
    quantiles = [special.betaincinv(first + move, second, places) for move in (step, -step)]
    expected = (quantiles[0] - quantiles[1]) / (2 * step) / (1 - samples)
    x = flambeau.from_numpy(samples)
    found = flambeau._dirichlet_grad(x, flambeau.full_like(x, first), flambeau.full_like(x, first + second))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)


def test_power_series_and_integral_meet() -> None:
    shape = flambeau.tensor([0.01, 0.5, 2.0, 30.0], dtype=flambeau.float64)
    below, above = (flambeau._standard_gamma_grad(shape, flambeau.full_like(shape, 0.8 + d)) for d in (-1e-12, 1e-12))
    np.testing.assert_allclose(below.numpy(), above.numpy(), rtol=1e-9)
    below, above = (
        flambeau._dirichlet_grad(flambeau.full_like(shape, 0.1 + d), shape, shape + 2) for d in (-1e-12, 1e-12)
    )
    np.testing.assert_allclose(below.numpy(), above.numpy(), rtol=1e-9)


def test_ends_of_the_range() -> None:
    ends = flambeau.tensor([0.0, 1.0], dtype=flambeau.float64)
    slopes = flambeau._dirichlet_grad(ends, flambeau.full_like(ends, 2.0), flambeau.full_like(ends, 3.0))
    np.testing.assert_allclose(slopes.numpy(), [0.0, 0.5], rtol=1e-6)
    assert flambeau._standard_gamma_grad(ends + 1, ends * 0).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("count", [3, 100])
def test_slopes_have_shapes_without_data(count: int) -> None:
    x = flambeau.rand(count, device="meta")
    assert flambeau._standard_gamma_grad(x, x[:1]).shape == (count,)
    assert flambeau._dirichlet_grad(x[:1], x, x.expand(2, count)).shape == (2, count)
