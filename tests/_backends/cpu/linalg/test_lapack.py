"""Routines of NumPy's library: every dtype and layout, batches, zeros, and what is left to others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flambeau._backends.cpu.linalg import lapack as eliminations
from flambeau._ops.linalg import ldl

DTYPES = ["float32", "float64", "complex64", "complex128"]
pytestmark = pytest.mark.skipif(
    eliminations.factored(np.eye(20)) is None, reason="NumPy has another library, whose routines are not known"
)


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    noise = np.random.default_rng(0).standard_normal((2, *shape))
    return (noise[0] + 1j * noise[1] if "complex" in dtype else noise[0]).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (7, 7), (20, 30), (30, 20), (2, 3, 17, 16)])
def test_factors_multiply_to_the_matrix(shape: tuple[int, ...], dtype: str) -> None:
    matrices = numbers(shape, dtype)
    found = eliminations.factored(matrices)
    assert found is not None
    packed, swaps = found
    assert (packed.dtype, swaps.dtype) == (matrices.dtype, np.int32)
    count = min(shape[-2:])
    lower = np.tril(packed[..., :count], -1) + np.eye(shape[-2], count, dtype=dtype)
    product = lower @ np.triu(packed[..., :count, :])
    for index in np.ndindex(*shape[:-2]):
        expected = matrices[index].copy()
        for step, chosen in enumerate(swaps[index] - 1):
            expected[[step, chosen]] = expected[[chosen, step]]
        np.testing.assert_allclose(product[index], expected, atol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["rows", "columns", "part", "steps"])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems(dtype: str, layout: str, upper: bool, unit: bool) -> None:
    matrices, right = numbers((2, 1, 40, 40), dtype), numbers((3, 20, 4), dtype)
    matrix = {
        "rows": matrices[..., :20, :20].copy(),
        "columns": matrices[..., :20, :20].copy().swapaxes(-1, -2),
        "part": matrices[..., :20, :20],
        "steps": matrices[..., ::2, ::2],
    }[layout] / 8 + 2 * np.eye(20, dtype=dtype)
    if layout != "rows":  # sums are new arrays: give them the layout again
        held = np.zeros((2, 1, 40, 40), dtype)
        place = {"columns": held[..., :20, :20].swapaxes(-1, -2), "part": held[..., :20, :20]}.get(layout)
        place = held[..., ::2, ::2] if place is None else place
        place[...] = matrix
        matrix = place
    found = eliminations.triangle_solved(matrix, right, upper, unit)
    assert found is not None
    triangle = np.triu(matrix) if upper else np.tril(matrix)
    if unit:
        triangle[..., range(20), range(20)] = 1
    np.testing.assert_allclose(triangle @ found, np.broadcast_to(right, found.shape), atol=200 * np.finfo(dtype).eps)


SHAPES = [(1, 1), (7, 7), (20, 30), (30, 20), (2, 3, 17, 16)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r", "raw"])
def test_orthogonal_factors_are_numpys(shape: tuple[int, ...], dtype: str, mode: Any) -> None:
    matrices = numbers(shape, dtype)
    found, expected = eliminations.qr(matrices, mode), np.linalg.qr(matrices, mode)
    for ours, theirs in [(found, expected)] if mode == "r" else zip(found, expected, strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, atol=500 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (2, 1, 3, 2)])
def test_least_squares(shape: tuple[int, ...], dtype: str) -> None:
    matrices, right = numbers(shape, dtype), numbers((shape[-2], 3), dtype)
    found = eliminations.least_squares(matrices, right, 100 * np.finfo(dtype).eps)
    assert found is not None
    room, ranks = found
    expected = np.linalg.pinv(matrices) @ right
    assert room.shape == (*shape[:-2], max(shape[-2:]), 3)
    np.testing.assert_allclose(room[..., : shape[-1], :], expected, rtol=1e-3, atol=1e3 * np.finfo(dtype).eps)
    assert (ranks == min(shape[-2:])).all()
    assert ranks.shape == shape[:-2]


def test_least_squares_count_what_is_nearly_dependent() -> None:
    matrix = np.stack([np.arange(6.0), np.ones(6), np.arange(6.0) + 1e-9 * np.arange(6.0) ** 2], 1)
    loose, exact = (eliminations.least_squares(matrix, np.ones((6, 1)), limit) for limit in (1e-6, 1e-12))
    assert loose is not None
    assert exact is not None
    assert (int(loose[1]), int(exact[1])) == (2, 3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 2, 6, 6), (70, 70)])
def test_symmetric_factors_are_those_of_the_way_back(shape: tuple[int, ...], hermitian: bool, dtype: str) -> None:
    hermitian = hermitian and "complex" in dtype
    matrices = numbers(shape, dtype)
    matrices = matrices + (matrices.conj() if hermitian else matrices).swapaxes(-1, -2)
    found = eliminations.symmetric_factored(matrices, hermitian)
    assert found is not None
    for place in np.ndindex(*shape[:-2]):
        packed, pivots, code = ldl._factor(matrices[place], hermitian)
        np.testing.assert_allclose(found[0][place], packed, atol=5e4 * np.finfo(dtype).eps)
        np.testing.assert_array_equal(found[1][place], pivots)
        assert found[2][place] == code == 0


def test_symmetric_factors_of_singular_matrices() -> None:
    found = eliminations.symmetric_factored(np.stack([np.eye(3), np.diag([1.0, 0.0, 2.0])]), False)
    assert found is not None
    assert found[2].tolist() == [0, 2]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (7, 7), (2, 3, 17, 17)])
def test_inverses_and_positive_factors(shape: tuple[int, ...], dtype: str) -> None:
    matrices = numbers(shape, dtype)
    found = eliminations.inverted(matrices)
    assert found is not None
    identity = np.broadcast_to(np.eye(shape[-1]), shape)
    np.testing.assert_allclose(matrices @ found[0], identity, atol=2e3 * np.finfo(dtype).eps)
    assert found[1].tolist() == np.zeros(shape[:-2]).tolist()
    positive = matrices @ matrices.conj().swapaxes(-1, -2) + identity.astype(dtype)
    lower = eliminations.positive_factored(positive + np.triu(np.ones(shape[-2:], dtype), 1))  # which is not read
    assert lower is not None
    assert (np.triu(lower, 1) == 0).all()
    np.testing.assert_allclose(lower @ lower.conj().swapaxes(-1, -2), positive, atol=1e3 * np.finfo(dtype).eps)


def test_inverses_and_factors_that_are_none() -> None:
    some = np.stack([np.eye(20), np.diag(np.arange(20.0) - 5), np.eye(20) * 2])
    found = eliminations.inverted(some)
    assert found is not None
    assert found[1].tolist() == [0, 6, 0]
    assert np.isinf(found[0][1]).all()
    assert (found[0][2] == np.eye(20) / 2).all()
    assert eliminations.positive_factored(some) is None


def test_what_is_left_to_others() -> None:
    singular = np.triu(np.ones((20, 20)))
    singular[3, 3] = 0
    assert eliminations.triangle_solved(singular, np.ones((20, 1)), True, False) is None
    assert eliminations.triangle_solved(singular, np.ones((20, 1)), True, True) is not None
    assert eliminations.factored(np.ones((3, 4, 4))) is None
    assert eliminations.factored(np.ones((0, 0))) is None
    assert eliminations.factored(np.ones((20, 20), np.float16)) is None
    assert eliminations.qr(np.ones((3, 4, 4)), "r") is None
    assert eliminations.least_squares(np.ones((2, 0)), np.ones((2, 1)), 0.1) is None
    assert eliminations.symmetric_factored(np.ones((0, 0)), False) is None


def test_working_memory_is_asked_for_once_for_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[tuple[Any, ...], int] = {}
    monkeypatch.setattr(eliminations, "_WANTED", sizes)
    for _ in range(2):
        for shape in ((20, 20), (20, 90), (90, 20), (2, 20, 20)):
            for dtype in DTYPES:
                matrices = numbers(shape, dtype)
                q, r = eliminations.qr(matrices, "reduced")
                np.testing.assert_allclose(q @ r, matrices, atol=100 * np.finfo(dtype).eps)
                assert not np.tril(r, -1).any()
    # R of three sizes, Q of two; batches want what one matrix wants
    assert len(sizes) == (3 + 2) * len(DTYPES)
    monkeypatch.setattr(eliminations, "_KEPT", 5)
    eliminations.qr(numbers((21, 21), "float32"), "reduced")
    assert len(sizes) == 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("adjoint", [False, True])
def test_solutions_by_factors(adjoint: bool, dtype: str) -> None:
    matrices, right = numbers((2, 18, 18), dtype) + 4 * np.eye(18, dtype=dtype), numbers((2, 18, 3), dtype)
    factors = eliminations.factored(matrices)
    assert factors is not None
    solution = eliminations.solved_by_factors(*factors, right, adjoint)
    system = matrices.conj().swapaxes(-1, -2) if adjoint else matrices
    np.testing.assert_allclose(system @ solution, right, atol=float(1000 * np.finfo(dtype).eps))
    assert eliminations.solved_by_factors(*factors, right[0], adjoint) is None  # another batch
