"""Random fills by generated kernels: the bits of the reference kernels, and the generator left in the same state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._backends.tiers import generated
from flambeau._core.generator import Generator
from flambeau._core.random import permutation, sampling

draws = generated("draws")
pytestmark = pytest.mark.skipif(draws is None, reason="no code is generated here")

FLOATS = ("float32", "float64")
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[str, ...], tuple[Any, ...]]] = {
    "uniform": (draws and draws.uniform, sampling.fill_uniform, FLOATS, (-1.5, 2)),
    "uniform in a narrow range": (draws and draws.uniform, sampling.fill_uniform, FLOATS, (1.0, 1.0000003)),
    "exponential": (draws and draws.exponential, sampling.fill_exponential, FLOATS, (1.7,)),
    "cauchy": (draws and draws.cauchy, sampling.fill_cauchy, FLOATS, (0.3, 2.1)),
    "geometric": (draws and draws.geometric, sampling.fill_geometric, FLOATS, (0.3,)),
    "log_normal": (draws and draws.log_normal, sampling.fill_log_normal, FLOATS, (0.3, 0.7)),
    "coins": (draws and draws.coins, sampling.fill_bernoulli, FLOATS, (0.7,)),
    "whole numbers": (draws and draws.whole_between, sampling.fill_random_between, ("int64",), (-3, 1000)),
}


def _sequence(fill: Callable[..., Any], dtype: str, numbers: tuple[Any, ...], sizes: tuple[int, ...]) -> Any:
    generator = Generator().manual_seed(5)
    arrays = [np.empty(size, dtype) for size in sizes]
    answers = [fill(array, generator, *numbers) for array in arrays]
    return arrays, generator.state_bytes(), answers


@pytest.mark.parametrize("name", CASES)
def test_fills(name: str) -> None:
    fill, reference, dtypes, numbers = CASES[name]
    for dtype in dtypes:
        sizes = (1, 2, 7, 16, 5000, 3)  # odd numbers of normals leave one for the next call
        arrays, state, answers = _sequence(fill, dtype, numbers, sizes)
        assert all(answer is array for answer, array in zip(answers, arrays, strict=True))
        with flambeau.backends.cpu.numpy_only():
            expected, expected_state, _ = _sequence(reference, dtype, numbers, sizes)
        for ours, theirs in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(state, expected_state)


def test_few_normal_numbers() -> None:
    for dtype in FLOATS:
        sizes = (1, 2, 7, 15, 3)
        arrays, state, _ = _sequence(draws.normal, dtype, (0.3, 0.7), sizes)
        with flambeau.backends.cpu.numpy_only():
            expected, expected_state, _ = _sequence(sampling.fill_normal, dtype, (0.3, 0.7), sizes)
        for ours, theirs in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(state, expected_state)


@pytest.mark.parametrize("n", [1, 2, 10, 1000])
def test_permutations(n: int) -> None:
    out = np.empty(n, np.int64)
    assert draws.permutation(out, Generator().manual_seed(1), n) is out
    with flambeau.backends.cpu.numpy_only():
        np.testing.assert_array_equal(out, permutation.randperm(n, out.dtype, Generator().manual_seed(1)))


def test_what_the_reference_kernels_do() -> None:
    generator, out = Generator(), np.empty(4, np.float32)
    assert draws.uniform(np.empty(4, np.float16), generator) is None
    assert draws.uniform(np.empty((4, 4), np.float32).T[:, 1:], generator) is None
    assert draws.uniform(out, generator, 2.0, 1.0) is None
    assert draws.uniform(out, generator, "a", 1.0) is None
    assert draws.normal(np.empty(16, np.float32), generator) is None
    assert draws.normal(out, generator, 0.0, -1.0) is None
    assert draws.exponential(out, generator, 0.0) is None
    assert draws.geometric(out, generator, 1.0) is None
    assert draws.coins(out, generator, 1.5) is None
    assert draws.whole_between(np.empty(4, np.int64), generator, 0, 2**40) is None
