"""Generated copies and conversions: the same bits as NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from flambeau._backends import tiers

DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool"]


def source(module: Any, dtype: str) -> Any:
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal(9000) * 10.0 ** rng.uniform(-6, 6, 9000)
    if dtype in ("int64", "int32", "uint8", "bool"):
        return module.tensor(rng.integers(0, 2 if dtype == "bool" else 255, 9000)).to(getattr(module, dtype))
    numbers[::500] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-45, 3.4e38, 65519.0] * 2
    return module.tensor(numbers).to(getattr(module, dtype))


@pytest.mark.parametrize("given", DTYPES)
@pytest.mark.parametrize("wanted", ["float32", "float64", "float16", "bfloat16"])
def test_conversions(given: str, wanted: str) -> None:
    got = source(flambeau, given).to(getattr(flambeau, wanted))
    reference = source(torch, given).to(getattr(torch, wanted))
    np.testing.assert_array_equal(got.double().numpy(), reference.double().numpy())


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.reshape(90, 100).t(),
        lambda x: x.reshape(9, 10, 100).transpose(0, 1),
        lambda x: x.reshape(90, 100)[:, ::2],
        lambda x: x.reshape(90, 100).flip(0),
        lambda x: x[:100].expand(90, 100),
        lambda x: x.reshape(10, 3, 30, 10).permute(0, 2, 3, 1),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_layouts(view: Any, dtype: str) -> None:
    ours, theirs = source(flambeau, dtype), source(torch, dtype)
    for copy in (lambda x: x.clone(), lambda x: x.contiguous(), lambda x: x.float()):
        got, wanted = copy(view(ours)), copy(view(theirs))
        assert got.stride() == wanted.stride()
        np.testing.assert_array_equal(got.double().numpy(), wanted.double().numpy())


def test_the_copy_has_memory_of_its_own() -> None:
    x = flambeau.ones(5000)
    y = x.clone()
    y[0] = 5
    assert float(x[0]) == 1
    with tiers.numpy_only():
        assert (x.clone() == x).all()


@pytest.mark.parametrize("shape", [(64, 64), (65, 67), (3, 2000), (5, 70, 90), (2, 4, 1031), (1, 128, 129)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "uint8", "bool", "int64"])
def test_turned_matrices(shape: tuple[int, ...], dtype: str) -> None:
    x = (flambeau.arange(int(np.prod(shape))) % 251).to(getattr(flambeau, dtype)).reshape(shape)
    got = x.transpose(-1, -2).contiguous()
    assert got.is_contiguous()
    np.testing.assert_array_equal(got.double().numpy(), x.double().numpy().swapaxes(-1, -2))
    part = x[..., 1:, :-1].transpose(-1, -2).contiguous()
    np.testing.assert_array_equal(part.double().numpy(), x.double().numpy()[..., 1:, :-1].swapaxes(-1, -2))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64", "uint8", "bool"])
def test_flips(dtype: str) -> None:
    for shape, dims in (
        ((90, 100), 1),
        ((90, 100), 0),
        ((9, 10, 100), (1, 2)),
        ((9, 10, 100), (0, 2)),
        ((3000, 3), (0, 1)),
        ((1800, 5), 1),
        ((9000,), 0),
    ):
        ours, theirs = (source(module, dtype).reshape(shape).flip(dims) for module in (flambeau, torch))
        assert ours.stride() == theirs.stride()
        np.testing.assert_array_equal(ours.to(flambeau.complex128).numpy(), theirs.to(torch.complex128).numpy())
