"""Products by NumPy's library on the threads of the pool: values, layouts, batches, its own threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._backends import arrays
from flambeau._backends.cpu.linalg import blas
from flambeau._backends.cpu.linalg import threaded_blas as shared_products

pytestmark = pytest.mark.skipif(
    shared_products._library("f") is None, reason="NumPy's library is another one, or has no such functions"
)

SHAPES = [
    ((300, 200), (200, 260)),
    ((1000, 40), (40, 30)),
    ((30, 1000), (1000, 2000)),
    ((8, 512, 196), (196, 256)),
    ((4, 6, 97, 64), (4, 6, 64, 97)),
    ((2, 1, 90, 90), (3, 90, 90)),
    ((3000, 16, 16), (3000, 16, 16)),
    ((1, 700, 300), (300, 400)),
]


def _matrices(shape: tuple[int, ...], kind: str, turned: bool) -> Any:
    draw = np.random.default_rng(len(shape)).standard_normal
    found = (draw(shape) + 1j * draw(shape) if kind in "FD" else draw(shape)).astype(kind)
    return found.swapaxes(-1, -2).copy().swapaxes(-1, -2) if turned else found


@pytest.mark.parametrize("kind", "fdFD")
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
def test_products_are_numpys(kind: str, shapes: Any, turned: Any) -> None:
    left, right = (_matrices(shape, kind, turns) for shape, turns in zip(shapes, turned, strict=True))
    found = shared_products.product(left, right)
    precise = 1e-4 if kind in "fF" else 1e-11
    assert found is not None
    np.testing.assert_allclose(found, np.matmul(left, right), rtol=precise, atol=100 * precise)


@pytest.mark.parametrize("shapes", SHAPES)
def test_bits_do_not_depend_on_the_number_of_threads(shapes: Any) -> None:
    left, right = (_matrices(shape, "f", False) for shape in shapes)
    before, found = flambeau.get_num_threads(), []
    for count in (1, 2, 5):
        flambeau.set_num_threads(count)
        found.append(shared_products.product(left, right))
    flambeau.set_num_threads(before)
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


def test_the_librarys_own_threads_are_left_as_they_were() -> None:
    before = blas.used_threads()
    shared_products.product(np.ones((300, 300)), np.ones((300, 300)))
    assert blas.used_threads() == before


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.ones((600, 600))[::2, ::2], np.ones((300, 300))),  # neither rows nor columns are neighbours
        (np.ones((300, 300)), np.ones((300, 300), np.float32)),
        (np.ones((300, 300), np.int64), np.ones((300, 300), np.int64)),
        (np.ones(90_000), np.ones((90_000, 2))),
        (np.ones((4, 4)), np.ones((4, 4))),
    ],
)
def test_what_is_not_shared_is_left_to_numpy(left: Any, right: Any) -> None:
    assert shared_products.product(left, right) is None
    assert (arrays.matmul(left, right) == np.matmul(left, right)).all()


def test_sizes_that_do_not_fit_are_numpys_affair() -> None:
    with pytest.raises(ValueError, match="mismatch in its core dimension"):
        arrays.matmul(np.ones((300, 300)), np.ones((200, 300)))
    with pytest.raises(ValueError, match="could not be broadcast"):
        arrays.matmul(np.ones((2, 300, 300)), np.ones((3, 300, 300)))


def test_a_result_that_is_given_is_filled() -> None:
    left, out = np.random.default_rng(0).standard_normal((300, 300)), np.empty((300, 300))
    assert arrays.matmul(left, left, out) is out
    np.testing.assert_allclose(out, left @ left)
