"""Functions with the C library's bits, in each of the three ways."""

import math

import numpy as np
import pytest

from flambeau._backends.tiers import generated
from flambeau._core.random import c_library
from flambeau._core.random.c_library import CFunction

FUNCTIONS = [each for each in vars(c_library).values() if isinstance(each, CFunction)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_bits(function: CFunction, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).uniform(*function._range, (6, 1000))
    expected = np.array([[getattr(math, function.name)(value) for value in row] for row in x.tolist()])
    np.testing.assert_array_equal(function(x), expected)
    monkeypatch.setattr(function, "_numpy_agrees", False)
    np.testing.assert_array_equal(function(x), expected)
    np.testing.assert_array_equal(function(x[:, ::2]), expected[:, ::2])
    np.testing.assert_array_equal(function.one_by_one(x.T), expected.T)
    if (kernels := generated("random")) is not None:
        np.testing.assert_array_equal(kernels.c_function(function.name, x[:, ::3]), expected[:, ::3])


def test_numpy_is_tried() -> None:
    def log(x: np.ndarray) -> np.ndarray:
        """A logarithm that is off by a unit in the last place in one of fifty."""
        exact = np.log(x)
        return np.where(np.arange(x.size) % 50 == 7, np.nextafter(exact, 1.0), exact)

    other = CFunction(log, 0.1, 0.9)
    assert not other.numpy_agrees
    x = np.linspace(0.1, 0.9, 100)
    assert other(x).tolist() == [math.log(each) for each in x]


def test_where_math_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_library.log, "_numpy_agrees", False)
    monkeypatch.setattr(c_library.exp, "_numpy_agrees", False)
    assert c_library.log(np.array([0.0, 1.0])).tolist() == [-math.inf, 0.0]
    assert c_library.exp(np.array([1e4, 0.0])).tolist() == [math.inf, 1.0]
