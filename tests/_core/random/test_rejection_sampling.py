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
    "dirichlet of rows": lambda x, scale: flambeau._sample_dirichlet(x.expand(3, -1)[:, :100] + 0.1),
    "multinomial": lambda x, scale: flambeau.multinomial(x.expand(2, -1), 7, replacement=True),
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


@pytest.mark.parametrize("name", ["poisson", "binomial", "multinomial"])
def test_refused_parameters_draw_nothing(name: str) -> None:
    wrong = flambeau.tensor([1.0, 2.0, 3.0, -1.0 if name != "binomial" else float("nan")])
    before = flambeau.manual_seed(5).get_state().numpy().copy()
    with pytest.raises((RuntimeError, ValueError)):
        OPS[name](wrong, 10)
    np.testing.assert_array_equal(flambeau.get_rng_state().numpy(), before)


def test_words_at_hand_stay_to_be_drawn() -> None:
    generator = flambeau.Generator().manual_seed(5)
    generator.draw32(100)
    for count in (3, 600, 5000):
        at_hand = generator.words_at_hand(count).copy()
        assert len(at_hand) >= min(count, 64)
        np.testing.assert_array_equal(generator.draw32(len(at_hand)), at_hand)
