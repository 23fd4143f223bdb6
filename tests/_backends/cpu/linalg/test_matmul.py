"""Generated products of matrices beside NumPy's, for every way in which matrices lie in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._backends import tiers
from flambeau._backends.cpu.linalg.matmul import product, product_of_few_rows

SIZES = [(64, 784, 256), (256, 64, 784), (70, 71, 73), (8, 5000, 17), (300, 8, 200), (129, 257, 65), (32, 256, 1024)]


def matrix(rows: int, columns: int, layout: str, dtype: str) -> Any:
    rng = np.random.default_rng(rows * columns)
    if layout == "rows":
        return rng.standard_normal((rows, columns)).astype(dtype)
    if layout == "columns":
        return rng.standard_normal((columns, rows)).astype(dtype).T
    if layout == "part":
        return rng.standard_normal((rows, columns + 5)).astype(dtype)[:, 2:-3]
    return rng.standard_normal((rows, 2 * columns)).astype(dtype)[:, ::2]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("left", ["rows", "columns", "part", "steps"])
@pytest.mark.parametrize("right", ["rows", "columns", "part", "steps"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layouts(sizes: tuple[int, int, int], left: str, right: str, dtype: str) -> None:
    m, k, n = sizes
    a, b = matrix(m, k, left, dtype), matrix(k, n, right, dtype)
    got = product(a, b)
    if got is None:
        assert right == "steps" or left == "steps"
        return
    assert got.flags.c_contiguous
    assert got.dtype == dtype
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    assert (np.abs(got - exact) <= bound * np.finfo(dtype).eps * 16).all()


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_special_values_stay_in_their_row_and_column(special: float) -> None:
    a, b = matrix(70, 80, "rows", "float32"), matrix(80, 90, "columns", "float32")
    a[3, 5] = special
    got, wanted = product(a, b), np.dot(a, b)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(wanted))
    assert np.isfinite(np.delete(got, 3, 0)).all()


def test_what_is_left_to_numpy() -> None:
    whole = np.ones((100, 100), np.float32)
    assert product(whole.astype(np.complex64), whole.astype(np.complex64)) is None
    assert product(whole, whole.astype(np.float64)) is None
    assert product(whole[::-1], whole) is None
    assert product(whole, whole[:, :10]) is None
    assert product(whole[:4], whole) is None


@pytest.mark.parametrize(("rows", "length", "columns"), [(3, 1000, 201), (64, 300, 200)])
def test_linear_layers_agree_with_numpy_and_with_any_number_of_threads(rows: int, length: int, columns: int) -> None:
    flambeau.manual_seed(0)
    layer = flambeau.nn.Linear(length, columns)
    x = flambeau.randn(rows, length, requires_grad=True)

    def run() -> list[Any]:
        layer.zero_grad()
        x.grad = None
        layer(x).sin().sum().backward()
        gradients = [each.grad for each in (x, *layer.parameters())]
        return [each.detach().numpy() for each in (layer(x), *gradients) if each is not None]

    before = flambeau.get_num_threads()
    try:
        flambeau.set_num_threads(1)
        one = run()
        flambeau.set_num_threads(3)
        three = run()
    finally:
        flambeau.set_num_threads(before)
    with tiers.numpy_only():
        reference = run()
    for first, second, third in zip(one, three, reference, strict=True):
        np.testing.assert_array_equal(first, second)
        np.testing.assert_allclose(first, third, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8])
@pytest.mark.parametrize(("length", "columns"), [(1, 1), (37, 6), (400, 133)])
def test_few_rows(dtype: str, rows: int, layout: str, length: int, columns: int) -> None:
    """Blocks of every size, with what is left over at the end of rows and of columns."""
    left, right = matrix(rows, length, "rows", dtype), matrix(length, columns, layout, dtype)
    found = product_of_few_rows(left, right)
    expected = left.astype(np.longdouble) @ right.astype(np.longdouble)
    bound = np.finfo(dtype).eps * np.abs(left).astype(np.longdouble) @ np.abs(right).astype(np.longdouble) * 2
    assert found.dtype == dtype
    assert (np.abs(found - expected) <= bound).all()


@pytest.mark.parametrize("sizes", [(16, 1280, 320), (16, 700, 333), (3, 4096, 40), (9, 33, 5000)])
def test_few_rows_have_the_same_bits_with_any_number_of_threads(sizes: tuple[int, int, int]) -> None:
    rows, length, columns = sizes
    left, right = matrix(rows, length, "rows", "float32"), matrix(length, columns, "rows", "float32")
    before = flambeau.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 5, 16):
            flambeau.set_num_threads(threads)
            found.append(product_of_few_rows(left, right))
    finally:
        flambeau.set_num_threads(before)
    np.testing.assert_allclose(found[0], left.astype(np.float64) @ right, rtol=1e-3, atol=1e-3)
    for each in found[1:]:
        np.testing.assert_array_equal(each, found[0])


def test_few_rows_of_other_layouts_are_none() -> None:
    left, right = np.ones((4, 8), np.float32), np.ones((8, 8), np.float32)
    assert product_of_few_rows(left[:, ::2], right[:4]) is None
    assert product_of_few_rows(left, np.ones((8, 16), np.float32)[:, ::2]) is None
    assert product_of_few_rows(left.astype(np.float16), right.astype(np.float16)) is None
    assert product_of_few_rows(np.ones((17, 8), np.float32), right) is None


def test_a_row_that_is_not_a_number_stays_alone() -> None:
    left, right = matrix(3, 40, "rows", "float32"), matrix(40, 50, "rows", "float32")
    left[1, 7] = np.nan
    for each in (right, np.asfortranarray(right)):
        assert np.isnan(product_of_few_rows(left, each)).any(1).tolist() == [False, True, False]
