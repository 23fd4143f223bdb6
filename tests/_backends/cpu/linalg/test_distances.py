"""Distances of rows by generated code are those of NumPy's kernels: every dtype, norm, layout and remainder."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from flambeau._backends import tiers
from flambeau._backends.cpu.linalg import distances

pytestmark = pytest.mark.skipif(tiers.generated("distances") is None, reason="there is no generator of code")

SHAPES = [((1, 1), (1, 1)), ((5, 3), (7, 3)), ((9, 40), (6, 40)), ((2, 1, 4, 17), (3, 5, 17))]


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("shapes", SHAPES)
def test_all_with_all(shapes: Any, p: float, dtype: str) -> None:
    left, right = (numbers(shape, dtype, seed) for seed, shape in enumerate(shapes))
    right = np.repeat(right, 2, -1)[..., ::2]  # with gaps
    found = distances.all_distances(left, right, p)
    expected = np.linalg.norm(left[..., :, None, :] - right[..., None, :, :], p, -1)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("shape", [(2, 1), (3, 20), (12, 33)])
def test_every_two(shape: tuple[int, int], p: float, dtype: str) -> None:
    matrix = numbers(shape, dtype, 0)
    first, second = np.triu_indices(shape[0], 1)
    expected = np.linalg.norm(matrix[first] - matrix[second], p, -1)
    np.testing.assert_allclose(distances.distances_of_pairs(matrix, p), expected, rtol=1e-5)


def test_what_is_left_to_others() -> None:
    matrix = np.ones((3, 2))
    assert distances.all_distances(matrix, matrix, 3.0) is None
    assert distances.all_distances(matrix, matrix.astype(np.float32), 2.0) is None
    assert distances.all_distances(matrix[:0], matrix, 2.0) is None
    assert distances.distances_of_pairs(matrix[:1], 2.0) is None
    assert distances.distances_of_pairs(matrix.astype(np.float16), 2.0) is None
