"""Arrays of the CUDA backend on simulated memory, beside NumPy's: dtypes, strides, views, functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flambeau._backends.cuda.arrays.array import DeviceArray, from_host, to_host
from flambeau._backends.cuda.arrays.host import HOST_CALLS
from flambeau._backends.cuda.runtime import driver as drivers
from tests.support.simulated_cuda import COMPILER, SimulatedDriver

pytestmark = pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")


@pytest.fixture(autouse=True, scope="module")
def _simulated() -> None:
    if drivers._driver is None:
        drivers.use(SimulatedDriver())
    import flambeau._backends.cuda.arrays.functions  # noqa: F401


def _sample(dtype: Any, *shape: int) -> Any:
    numbers = np.random.RandomState(0).uniform(-3, 3, shape)
    return (numbers + 1j * numbers[::-1] if np.dtype(dtype).kind == "c" else numbers).astype(dtype)


def _same(function: Callable[..., Any], *arrays: Any) -> None:
    """The function gives on the device what it gives on the host, there."""
    expected = function(*arrays)
    actual = function(*[from_host(each) if isinstance(each, np.ndarray) else each for each in arrays])
    assert type(actual) is DeviceArray
    assert actual.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(
        to_host(actual).astype(complex), np.asarray(expected).astype(complex), rtol=2e-6, atol=1e-6
    )


_TYPES = [np.float32, np.float16, ml_dtypes.bfloat16, np.uint8, np.int64]


@pytest.mark.parametrize("dtype", [*_TYPES, np.uint64, np.complex64, bool], ids=lambda each: np.dtype(each).name)
def test_arithmetic(dtype: Any) -> None:
    x, y = _sample(dtype, 3, 37), _sample(dtype, 3, 37)
    _same(lambda a, b: a + b, x, y)
    _same(lambda a, b: a * b, x, y[:, ::-1])
    _same(lambda a, b: a.T * b, x, y[0].reshape(-1, 1))
    _same(lambda a, b: a == b, x, y[0])


@pytest.mark.parametrize("dtype", _TYPES, ids=lambda each: np.dtype(each).name)
def test_conversions(dtype: Any) -> None:
    x = np.arange(12).reshape(3, 4).astype(dtype)
    for target in _TYPES:
        _same(lambda a, target=target: a.T.astype(target), x)


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x[1],
        lambda x: x[..., ::-2],
        lambda x: x[1:, None, 2],
        lambda x: x[x > 0],
        lambda x: x[np.array([0, 2], like=x)],
        lambda x: x.T.reshape(-1),
        lambda x: np.moveaxis(x[None], 0, -1),
        lambda x: np.broadcast_to(x, (2, 3, 5)) + 1,
        lambda x: np.concatenate([x, x[:1]], 0),
        lambda x: np.where(x > 0, x, 0),
        lambda x: np.clip(x, -1, None),
        lambda x: x.sum(0, keepdims=True),
        lambda x: np.maximum.reduce(x, axis=1),
        lambda x: np.sort(x, axis=1),
        lambda x: np.cumsum(x, 1),
        lambda x: x @ x.T,
        lambda x: np.linalg.inv(x[:, :3]),
        lambda x: np.add.outer(x[0], x[1]),
    ],
)
def test_views_and_functions(use: Callable[[Any], Any]) -> None:
    _same(use, _sample(np.float32, 3, 5))


def test_writes_reach_the_base() -> None:
    array = from_host(np.zeros((3, 4), np.float32))
    array[1] = 2
    array[:, 2] += 1
    array[array > 2] = 9
    array.T[0][...] = from_host(np.arange(3))
    np.testing.assert_array_equal(to_host(array), [[0, 0, 1, 0], [1, 2, 9, 2], [2, 0, 1, 0]])


def test_positions_in_half_precision() -> None:
    values = np.arange(6).astype(ml_dtypes.bfloat16)
    array = from_host(values)
    np.testing.assert_array_equal(to_host(array[array > 2]), values[3:])
    array[np.array([1, 3], like=array)] = 9
    assert to_host(array).astype(int).tolist() == [0, 9, 2, 9, 4, 5]


def test_overlapping_writes_read_first() -> None:
    array = from_host(np.arange(6.0))
    array[1:] = array[:-1]
    np.testing.assert_array_equal(to_host(array), [0, 0, 1, 2, 3, 4])
    np.add(array[1:], array[:-1], out=array[1:])
    np.testing.assert_array_equal(to_host(array), [0, 0, 1, 3, 5, 7])


def test_host_arrays_are_refused() -> None:
    array = from_host(np.ones(3))
    for use in (float, bool, np.asarray, lambda x: x + np.ones(3)):
        with pytest.raises(TypeError):
            use(array)


def test_what_runs_on_the_host_is_counted() -> None:
    before = HOST_CALLS["median"]
    np.median(from_host(np.eye(2)))
    assert HOST_CALLS["median"] == before + 1
    before = HOST_CALLS.total()
    array = from_host(np.ones((4, 4), np.float32))
    np.exp(array.T + 1).sum()
    assert HOST_CALLS.total() == before
