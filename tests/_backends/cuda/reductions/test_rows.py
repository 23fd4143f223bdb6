"""Row programs in CUDA C with many threads, which wait for each other: every way to divide a row, beside NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flambeau._backends.cuda.arrays.array import from_host, to_host
from flambeau._backends.cuda.reductions import reduce, rows
from flambeau._backends.cuda.runtime import driver as drivers
from flambeau._codegen.rows import programs
from tests.support.simulated_cuda import COMPILER, SimulatedDriver

pytestmark = pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")

BF16 = ml_dtypes.bfloat16


@pytest.fixture(autouse=True, scope="module")
def _together() -> Iterator[None]:
    if drivers._driver is None:
        drivers.use(SimulatedDriver())
    import flambeau._backends.cuda.arrays.functions  # noqa: F401

    driver: Any = drivers.driver()
    _forget()
    driver.together = True
    yield
    driver.together = False
    _forget()


def _forget() -> None:
    """Kernels are compiled for threads of one kind."""
    for module in (rows, reduce):
        for each in vars(module).values():
            if hasattr(each, "cache_clear"):
                each.cache_clear()


def _sample(dtype: Any, *shape: int) -> Any:
    return np.random.RandomState(0).uniform(-3, 3, shape).astype(dtype)


def _close(actual: Any, expected: Any, dtype: Any) -> None:
    tolerance = 2e-2 if np.dtype(dtype).itemsize == 2 else 2e-5
    found = to_host(actual).astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * abs(expected).max())


def _softmax(x: Any, axis: int) -> Any:
    x = x.astype(np.float64)
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@pytest.mark.parametrize(
    ("dtype", "shape", "axis"),
    [
        (np.float32, (5, 3), 1),  # a few threads, no pack
        (np.float32, (3, 256), 1),  # packs, one group of 32 threads
        (BF16, (3, 3001), 1),  # rows that begin anywhere, in a block
        (np.float32, (2, 40001), 1),  # longer than what registers hold
        (np.float32, (2, 20, 7), 1),  # columns
        (np.float32, (1, 200, 3), 1),  # long columns
    ],
)
def test_softmax(dtype: Any, shape: tuple[int, ...], axis: int) -> None:
    x, grad = _sample(dtype, *shape), _sample(dtype, *shape)[::-1].copy()
    expected = _softmax(x, axis)
    _close(rows.softmax(from_host(x), axis), expected, dtype)
    result = np.log(expected).astype(dtype)
    of_x = rows.log_softmax_backward(from_host(grad), from_host(result), axis)
    wide = grad.astype(np.float64)
    _close(of_x, wide - np.exp(result.astype(np.float64)) * wide.sum(axis, keepdims=True), dtype)


@pytest.mark.parametrize(
    ("dtype", "count", "length"),
    [
        (np.float32, 70, 12),  # rows side by side in a group of 32 threads
        (BF16, 9, 768),  # several rows in a block, whose sums meet
        (np.float32, 2, 5001),  # no packs
    ],
)
def test_layer_norm(dtype: Any, count: int, length: int) -> None:
    x, grad = _sample(dtype, count, length), _sample(dtype, count, length)[:, ::-1].copy()
    weight, bias = _sample(dtype, length), _sample(dtype, length)[::-1].copy()
    given = [from_host(each) for each in (x, weight, bias, grad)]
    made = rows.layer_norm(given[0], (length,), given[1], given[2], 1e-5, np.dtype(np.float32))
    assert made is not None
    x, weight, bias, grad = (each.astype(np.float64) for each in (x, weight, bias, grad))
    mean = x.mean(1, keepdims=True)
    rstd = 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    normal = (x - mean) * rstd
    for actual, expected in zip(made, (normal * weight + bias, mean, rstd), strict=True):
        _close(actual, expected, dtype)
    found = rows.layer_norm_backward(
        [given[3], None, None], (True, True, True), given[0], (length,), given[1], given[2], made[1], made[2]
    )
    assert found is not None
    scaled = grad * weight
    rest = scaled - scaled.mean(1, keepdims=True) - normal * (scaled * normal).mean(1, keepdims=True)
    for actual, expected in zip(found, (rest * rstd, (grad * normal).sum(0), grad.sum(0)), strict=True):
        _close(actual, expected, dtype)


def test_each_way_is_taken() -> None:
    """The shapes above are divided as their remarks say."""
    softmax, backward = programs.softmax, programs.norm_backward
    assert rows._layout(softmax("float32", False), 256, True)[:4] == (4, 2, 32, 4)
    assert rows._layout(softmax("float32", False), 256, False).width == 1
    long = rows._layout(softmax("bfloat16", False), 3001, True)
    assert long.shifted
    assert long.width == 8
    assert long.along > 32
    assert long.packs
    assert rows._layout(softmax("float32", False), 40001, True)[:3] == (4, 0, 1024)
    norm = backward("bfloat16", "bfloat16", "float32", True, True, True, True)
    assert rows._layout(norm, 768, True) == (8, 1, 96, 4, False, False)
