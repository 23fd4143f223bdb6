"""Extremes along a dimension and their places: PyTorch's bits, for any number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from flambeau._backends.tiers import generated

pytestmark = pytest.mark.skipif(generated("select") is None, reason="no code generator")

SHAPES = [(300, 257), (3, 70, 130), (7, 333, 3), (40000, 2), (2, 9000), (5,), (1, 1), (90, 1, 70)]
DTYPES = ["float32", "bfloat16", "float16", "float64", "int64", "int32", "uint8", "int8"]


@pytest.fixture(autouse=True)
def _usual_number_of_threads() -> Iterator[None]:
    number = flambeau.get_num_threads()
    yield
    flambeau.set_num_threads(number)


def _numbers(shape: tuple[int, ...], dtype: str, few_values: bool) -> Any:
    numbers = np.round(np.random.default_rng(0).standard_normal(shape) * 20)
    if few_values:
        numbers = numbers.clip(-1, 1)
    flat = numbers.reshape(-1)
    if "float" in dtype:
        flat[::97] = np.nan
        flat[5:6], flat[6:7] = -0.0, 0.0
    return numbers


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_and_places(dtype: str, shape: tuple[int, ...]) -> None:
    for few_values in (False, True):
        numbers = _numbers(shape, dtype, few_values)
        for turned in (False, True):
            ours, theirs = (
                module.tensor(numbers.T if turned else numbers).to(getattr(module, dtype))
                for module in (flambeau, torch)
            )
            for dim in range(len(shape)):
                for name in ("max", "min", "argmax", "argmin"):
                    _check(ours, theirs, name, dim)


def _check(ours: Any, theirs: Any, name: str, dim: int) -> None:
    for keepdim in (False, True):
        wanted = getattr(theirs, name)(dim, keepdim=keepdim)
        for threads in (1, 2, 3, 7):
            flambeau.set_num_threads(threads)
            got = getattr(ours, name)(dim, keepdim=keepdim)
            pairs = [(got, wanted)] if name.startswith("arg") else zip(got, wanted, strict=True)
            for one, other in pairs:
                assert one.stride() == other.stride()
                one_bits, other_bits = (each.double().numpy() for each in (one, other))
                np.testing.assert_array_equal(one_bits, other_bits)
                kept = ~np.isnan(one_bits)
                np.testing.assert_array_equal(np.signbit(one_bits[kept]), np.signbit(other_bits[kept]))


def test_a_view_that_is_transposed() -> None:
    numbers = _numbers((200, 150, 4), "float32", True)
    for name in ("max", "argmin"):
        for dim in range(3):
            _check(
                *[module.tensor(numbers).to(module.float32).transpose(0, 2) for module in (flambeau, torch)], name, dim
            )
