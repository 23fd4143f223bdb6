"""Elements of a given rank: the generated kernel beside NumPy's partition and a stable sort."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._backends.arrays import leading
from flambeau._backends.tiers import generated, numpy_only
from flambeau._ops.reduce.sort import _selected, ordered_positions

pytestmark = pytest.mark.skipif(generated("select") is None, reason="no code generator")

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8"]
SHAPES = [(1,), (7,), (33,), (700,), (3, 40), (4, 5, 6), (2, 300, 3)]


def _array(dtype: str, shape: tuple[int, ...], few_values: bool) -> Any:
    source = np.random.RandomState(len(dtype) + sum(shape))
    array = (source.randint(-4, 5, shape) if few_values else source.standard_normal(shape) * 50).astype(dtype)
    if array.dtype.kind == "f":
        flat = array.reshape(-1)
        flat[1::9], flat[2::9], flat[3::11] = -0.0, 0.0, np.inf
        if few_values:
            flat[::7] = np.nan
    return array


def _by_sorting(array: Any, dim: int, kind: str, rank: int) -> Any:
    order, size = array.argsort(dim, "stable"), array.shape[dim]
    missing = np.isnan(array).sum(dim, keepdims=True)
    if kind == "median":
        ranks = np.where(missing > 0, size - missing, (size - 1) // 2)
    else:
        ranks = np.maximum(size - missing - 1, 0) // 2 if kind == "nanmedian" else np.full_like(missing, rank)
    return np.take_along_axis(order, ranks, dim)


@pytest.mark.parametrize("few_values", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_selection_is_that_of_a_stable_sort(dtype: str, shape: tuple[int, ...], few_values: bool) -> None:
    array = _array(dtype, shape, few_values)
    for dim in range(array.ndim):
        size = shape[dim]
        for kind, rank in [("given", 0), ("given", size - 1), ("given", size // 3), ("median", 0), ("nanmedian", 0)]:
            positions = _by_sorting(array, dim, kind, rank)
            values = np.take_along_axis(array, positions, dim)
            compiled = _selected(array, dim, True, kind, rank)
            with numpy_only():
                plain = _selected(array, dim, True, kind, rank)
            for result in (compiled, plain):
                np.testing.assert_array_equal(result[1], positions)
                assert result[0].tobytes() == values.tobytes()


def test_strided_input() -> None:
    array = _array("float32", (2, 300, 3), False).transpose(2, 0, 1)[:, ::-1]
    for dim in range(3):
        values, positions = _selected(array, dim, False, "median", 0)
        with numpy_only():
            expected = _selected(array, dim, False, "median", 0)
        assert values.tobytes() == expected[0].tobytes()
        np.testing.assert_array_equal(positions, expected[1])


@pytest.mark.parametrize("few_values", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_in_order(dtype: str, shape: tuple[int, ...], few_values: bool) -> None:
    array = _array(dtype, shape, few_values)
    for dim in range(array.ndim):
        for descending in (False, True):
            order = ordered_positions(array, dim, descending)
            for count in {1, min(5, shape[dim]), shape[dim]}:
                found = leading(array, dim, count, descending, descending)
                if found is None:
                    assert count > 16
                    assert shape[dim] > 32
                    continue
                wanted = order[(*[slice(None)] * dim, slice(count))]
                np.testing.assert_array_equal(found[1], wanted)
                np.testing.assert_array_equal(found[0], np.take_along_axis(array, wanted, dim))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_a_nan_may_lead_the_smallest(dtype: str, shape: tuple[int, ...]) -> None:
    array = _array(dtype, shape, True)
    for dim in range(array.ndim):
        found = leading(array, dim, 1, False, True)
        assert found is not None
        np.testing.assert_array_equal(found[1], array.argmin(dim, keepdims=True))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "int8"])
def test_the_most_frequent(dtype: str) -> None:
    for shape, dim in (((2, 5), 1), ((3, 40, 6), 1), ((4, 100), 0), ((200,), 0)):
        numbers = np.random.RandomState(len(shape)).randint(0, 6, shape) * (40 if dtype == "uint8" else 1)
        x = flambeau.from_numpy(numbers).to(getattr(flambeau, dtype))
        if x.is_floating_point():
            x.view(-1)[::7] = math.nan
            x.view(-1)[3] = -0.0
        for keepdim in (False, True):
            values, indices = x.mode(dim, keepdim)
            with numpy_only():
                expected = x.mode(dim, keepdim)
            np.testing.assert_array_equal(values.double().numpy(), expected.values.double().numpy())
            np.testing.assert_array_equal(indices.numpy(), expected.indices.numpy())
    assert x.new_full((3,), 2).mode().indices == 2
