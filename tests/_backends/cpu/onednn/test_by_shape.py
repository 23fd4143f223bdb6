"""Products in parts that follow from the shapes: the same bits for any number of threads, and as exact as others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._backends import tiers
from flambeau._backends.cpu.onednn import by_shape

pytestmark = pytest.mark.skipif(not by_shape.available(), reason="oneDNN for x86-64, and generated code")
THREADS = (1, 2, 3, 7, 16)
SIZES = [
    (512, 768, 768), (3, 4096, 256), (128, 1024, 768), (1024, 2048, 200), (31, 4096, 31), (1, 3000, 500), (400, 90, 1),
    (33, 32, 31), (2048, 33, 700),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
    torch.reproducible(None)


def _matrix(rows: int, columns: int, turned: bool) -> Any:
    drawn = np.random.default_rng(rows).standard_normal((columns, rows) if turned else (rows, columns), np.float32)
    return drawn.T if turned else drawn


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_products_have_the_same_bits_for_any_number_of_threads(
    sizes: tuple[int, int, int], turned: tuple[bool, bool]
) -> None:
    rows, length, columns = sizes
    left, right = _matrix(rows, length, turned[0]), _matrix(length, columns, turned[1])
    row = np.random.default_rng(1).standard_normal(columns, np.float32)
    found: dict[Any, Any] = {}
    for threads in THREADS:
        torch.set_num_threads(threads)
        plain, added = by_shape.product(left, right), by_shape.product(left, right, row)
        if plain is None:
            assert rows * length * columns < by_shape._LEAST
            return
        found[plain.tobytes(), added.tobytes()] = plain, added
    assert len(found) == 1
    exact = left.astype(np.float64) @ right.astype(np.float64)
    ((plain, added),) = found.values()
    np.testing.assert_allclose(plain, exact, 1e-4, 1e-6 * length)
    np.testing.assert_allclose(added, exact + row, 1e-4, 1e-6 * length)
    assert torch.get_num_threads() == THREADS[-1]


def test_other_products_are_left_to_others() -> None:
    single, double = np.ones((64, 64), np.float32), np.ones((64, 64))
    assert by_shape.product(double, double) is None
    assert by_shape.product(single[None], single) is None
    assert by_shape.product(single, np.ones((63, 64), np.float32)) is None
    assert by_shape.product(single[::2, ::2], single[:32]) is None
    assert by_shape.product(single[:3, :3], single[:3, :3].copy()) is None


def test_it_is_used_at_threads_alone() -> None:
    torch.reproducible("threads")
    assert tiers.library() is by_shape
    torch.reproducible("batch")
    assert tiers.library() is None
    torch.reproducible("threads")
    assert tiers.library() is by_shape
    with tiers.numpy_only():
        assert tiers.library() is None
    assert tiers.library() is by_shape
    torch.reproducible("run")
    assert tiers.library() is not by_shape
