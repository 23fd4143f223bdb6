"""Generated reductions beside exact sums and NumPy."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flambeau
from flambeau._backends import tiers
from flambeau._backends.cpu.reductions.reduce import bounds, reduced, variances

SHAPES = [
    ((100_003,), (0,)),
    ((70, 90), (0, 1)),
    ((70, 90), (0,)),
    ((70, 90), (1,)),
    ((3, 1000, 5), (1,)),
    ((5, 3, 4, 1000), (1, 2)),
    ((2, 3000), (0,)),
    ((1, 9000, 1), (1,)),
    ((9000, 3), (0,)),
    ((4, 20, 2500), (0, 1)),
]


@pytest.mark.parametrize(("shape", "dims"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_sums_are_accurate(shape: tuple[int, ...], dims: tuple[int, ...], dtype: str) -> None:
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    x = np.random.default_rng(0).standard_normal(shape).astype(kind)
    wide = np.dtype(np.float64 if dtype == "float64" else np.float32)
    got = reduced("add", x, dims, wide)
    exact = x.astype(np.float64).sum(dims)
    size = np.abs(x.astype(np.float64)).sum(dims)
    assert got.dtype == wide
    assert got.shape == exact.shape
    # Errors grow with the logarithm of the length, not with the length.
    length = math.prod(shape[dim] for dim in dims)
    assert (np.abs(got - exact) <= size * np.finfo(wide).eps * (2 + math.log2(length))).all()


@pytest.mark.parametrize(("shape", "dims"), SHAPES)
@pytest.mark.parametrize("kind", ["maximum", "minimum"])
def test_extremes(shape: tuple[int, ...], dims: tuple[int, ...], kind: str) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    wanted = getattr(np, kind).reduce(x, dims)
    np.testing.assert_array_equal(reduced(kind, x, dims, x.dtype), wanted)
    flat = x.reshape(-1)
    flat[len(flat) // 3] = np.nan
    np.testing.assert_array_equal(reduced(kind, x, dims, x.dtype), getattr(np, kind).reduce(x, dims))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int16", "uint8"])
def test_both_extremes_in_one_pass(dtype: str) -> None:
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    for size in (1, 2, 7, 31, 32, 33, 65, 1000, 16_384):
        x = (np.random.default_rng(size).standard_normal(size) * 50).astype(kind)
        for _ in range(2):
            found = bounds(x)
            assert found is not None
            for got, wanted in zip(found, (np.min(x), np.max(x)), strict=True):
                assert got.dtype is x.dtype
                assert got.shape == ()
                np.testing.assert_array_equal(got.astype(np.float64), wanted.astype(np.float64))
            x[size // 2] = 3 if kind.kind in "iu" else np.nan
    assert bounds(np.ones((4, 4), kind).T[:, ::2]) is None
    assert bounds(np.ones(0, kind)) is None


def test_infinities_and_nan_in_sums() -> None:
    for special in (np.inf, -np.inf, np.nan):
        x = np.ones((50, 200), np.float32)
        x[7, 9] = special
        for dims in ((0,), (1,), (0, 1)):
            np.testing.assert_array_equal(reduced("add", x, dims, x.dtype), np.add.reduce(x, dims))


@pytest.mark.parametrize(
    ("x", "dims"),
    [
        (np.broadcast_to(np.ones((1, 80), np.float32), (60_000, 80)), (0,)),
        (np.ones((60, 80), bool), (0,)),
        (np.ones((60, 80), np.complex64), (0,)),
        (np.ones((60, 80), np.float32), ()),
    ],
)
def test_what_is_left_to_numpy(x: Any, dims: tuple[int, ...]) -> None:
    assert reduced("add", x, dims, x.dtype) is None


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 2), (1, 3), (0, 1, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_any_layout(dims: tuple[int, ...], order: tuple[int, ...], step: int) -> None:
    x = np.random.default_rng(5).standard_normal((7, 6, 11, 24)).astype(np.float32)[::step].transpose(order)
    for kind in ("add", "maximum"):
        got = reduced(kind, x, dims, x.dtype)
        assert got.flags.c_contiguous
        wanted = getattr(np, kind).reduce(x.astype(np.float64), dims).astype(np.float32)
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "var", "std", "norm"])
@pytest.mark.parametrize("dim", [None, 0, 1, -1, (0, 1), (1, 2), (0, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_public_functions_agree_with_numpy_kernels(name: str, dim: Any, keepdim: bool) -> None:
    x = flambeau.randn(20, 30, 40)

    def run() -> Any:
        if dim is None:
            return getattr(x, name)() if name in ("sum", "mean", "var", "std", "norm") else getattr(x, name)((0, 1, 2))
        return getattr(x, name)(dim=dim, keepdim=keepdim)

    got = run()
    with tiers.numpy_only():
        wanted = run()
    assert got.stride() == wanted.stride()
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_variances_in_one_pass(dtype: str, keepdim: bool, root: bool) -> None:
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    for shape, dims in (((10,), (0,)), ((2, 5), (0,)), ((70, 90), (1,)), ((3, 50, 37), (1,)), ((4, 3, 6), (1, 2))):
        x = np.random.default_rng(1).standard_normal(shape).astype(kind) + kind.type(3)
        spread, mean = variances(x, dims, x.size / 3, keepdim, root)
        exact = x.astype(np.float64)
        apart = np.square(exact - exact.mean(dims, keepdims=True)).sum(dims, keepdims=keepdim) / (x.size / 3)
        tight = {"rtol": 1e-15 if dtype == "float64" else 1e-7}
        np.testing.assert_allclose(spread, np.sqrt(apart) if root else apart, **tight)
        np.testing.assert_allclose(mean, exact.mean(dims, keepdims=keepdim), **tight)
    assert variances(x[:, ::2], dims, 1.0, keepdim, root) is None
    assert variances(np.ones((2, 20_000), kind), (1,), 1.0, keepdim, root) is None


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1), (2,), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(1, 80, 24), (60, 1, 24), (60, 80, 1), (1, 1, 24)])
def test_repeated_elements_are_written_out(shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    x = np.broadcast_to(np.random.default_rng(3).standard_normal(shape), (60, 80, 24))
    done = reduced("add", x, dims, x.dtype)
    assert done is not None
    np.testing.assert_array_equal(done, reduced("add", np.ascontiguousarray(x), dims, x.dtype))
