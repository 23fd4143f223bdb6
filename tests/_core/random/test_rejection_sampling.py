"""Poisson, binomial and gamma numbers: the generated loops beside Python's own, and where both leave the generator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._backends.tiers import available, numpy_only

pytestmark = pytest.mark.skipif(not available(), reason="code cannot be generated here")

OPS: dict[str, Any] = {
    "poisson": lambda x, scale: flambeau.poisson(x),
    "binomial": lambda x, scale: flambeau.binomial(x.floor(), x / (scale + 1)),
    "gamma": lambda x, scale: flambeau._standard_gamma(x),
    "dirichlet": lambda x, scale: flambeau._sample_dirichlet(x + 0.1),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [3, 4, 1001])
@pytest.mark.parametrize("scale", [0.5, 30, 500])
@pytest.mark.parametrize("name", OPS)
def test_generated_loops_draw_the_same_numbers(name: str, scale: float, count: int, dtype: str) -> None:
    parameters = (np.random.RandomState(count).rand(count) * scale).astype(dtype)
    parameters[::17] = 0

    def run() -> list[bytes]:
        flambeau.manual_seed(count)
        flambeau.randn(3)  # a normal number waits
        first = OPS[name](flambeau.from_numpy(parameters), scale)
        second = OPS[name](flambeau.from_numpy(parameters), scale)
        return [each.numpy().tobytes() for each in (first, second, flambeau.get_rng_state(), flambeau.randn(3))]

    compiled = run()
    with numpy_only():
        plain = run()
    assert compiled == plain


def test_words_ahead_stay_to_be_drawn() -> None:
    generator = flambeau.Generator().manual_seed(5)
    generator.draw32(100)
    for count in (3, 600, 5000):
        ahead = generator.words_ahead(count).copy()
        np.testing.assert_array_equal(generator.draw32(count), ahead[:count])
