"""Decompositions of elementary operations beside NumPy's, and one matrix alone beside the same among others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._backends import portable_lapack as own

DTYPES = [np.float32, np.float64]
SHAPES = [(1, 1), (2, 2), (5, 5), (9, 9), (3, 7, 7)]


def _drawn(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def _near(found: Any, wanted: Any) -> None:
    close = 1e-4 if np.float32 in (found.dtype, wanted.dtype) else 1e-10
    np.testing.assert_allclose(found, wanted, close, close * max(1.0, float(abs(wanted).max(initial=0))))


def _turned(a: Any) -> Any:
    return a.swapaxes(-1, -2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_systems(shape: tuple[int, ...], dtype: Any) -> None:
    a, b = _drawn(shape, dtype), _drawn((*shape[:-1], 4), dtype, 1)
    a += 3 * np.eye(shape[-1], dtype=dtype)  # not to magnify the rounding of float32
    wide = a.astype(np.float64)
    _near(np.matmul(wide, own.solve(a, b)), b)
    _near(np.matmul(wide, own.inv(a)), np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape))
    _near(own.det(a), np.linalg.det(wide))
    for upper in (False, True):
        for unit in (False, True):
            triangle = (np.triu if upper else np.tril)(wide, 0) / (4 if unit else 1)
            if unit:
                triangle[..., range(shape[-1]), range(shape[-1])] = 1
            given = triangle.astype(dtype)
            found = own.triangle_solved(given, b, upper, unit)
            _near(np.matmul(triangle, found.astype(np.float64)).astype(dtype), b)
    positive = (wide @ _turned(wide) + np.eye(shape[-1])).astype(dtype)
    lower = own.cholesky(positive)
    assert (np.triu(lower, 1) == 0).all()
    _near(lower @ _turned(lower), positive)


def test_signs_and_logarithms_of_determinants() -> None:
    a = _drawn((40, 6, 6))
    a[3, 2] = 0
    with flambeau.reproducible("machine"):
        sign, size = own.slogdet(a)
    wanted = np.linalg.slogdet(a)
    assert (sign == wanted[0]).all()
    np.testing.assert_allclose(size, wanted[1], 1e-12, 1e-12)


def test_matrices_without_a_result_are_errors() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        own.solve(np.zeros((2, 2)), np.ones((2, 1)))
    with pytest.raises(np.linalg.LinAlgError):
        own.cholesky(-np.eye(3))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (6, 3), (3, 6), (2, 5, 3), (2, 3, 5), (4, 1)])
def test_orthogonal_factors(shape: tuple[int, ...], dtype: Any) -> None:
    a = _drawn(shape, dtype)
    for mode in ("reduced", "complete"):
        q, r = own.qr(a, mode)
        wanted_q, wanted_r = np.linalg.qr(a, mode)
        assert (q.shape, r.shape) == (wanted_q.shape, wanted_r.shape)
        _near(q @ r, a)
        _near(_turned(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], *q.shape[-1:] * 2)))
        _near(r, wanted_r)  # the signs are the library's, too
    raw, factors = own.qr(a, "raw")
    for found, wanted in zip((raw, factors), np.linalg.qr(a, "raw"), strict=True):
        assert found.shape == wanted.shape
        _near(found, wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_eigenvalues(shape: tuple[int, ...], dtype: Any) -> None:
    a = _drawn(shape, dtype)
    for triangle, part in (("L", np.tril), ("U", np.triu)):
        symmetric = part(a) + _turned(part(a, -1 if triangle == "L" else 1))
        values, vectors = own.eigh(a, triangle)
        _near(values, np.linalg.eigvalsh(symmetric))
        _near(symmetric @ vectors, vectors * values[..., None, :])
        assert own.eigvalsh(a, triangle).tobytes() == values.tobytes()


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (6, 3), (3, 6), (2, 5, 3), (2, 3, 5), (4, 1)])
@pytest.mark.parametrize("rank", [None, 1, 0])
def test_singular_values(shape: tuple[int, ...], dtype: Any, full: bool, rank: int | None) -> None:
    a = _drawn(shape, dtype)
    if rank is not None:
        a = (a[..., :, :rank] @ a[..., :rank, :]).astype(dtype)
    u, s, v = own.svd(a, full)
    wanted = np.linalg.svd(a, full)
    assert [each.shape for each in (u, s, v)] == [each.shape for each in wanted]
    _near(s, wanted[1])
    smallest = min(shape[-2:])
    _near((u[..., :smallest] * s[..., None, :]) @ v[..., :smallest, :], a)
    for each in (_turned(u) @ u, v @ _turned(v)):
        _near(each, np.broadcast_to(np.eye(each.shape[-1]), each.shape))
    assert own.svdvals(a).tobytes() == s.tobytes()


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3)])
def test_there_may_be_nothing_to_compute(shape: tuple[int, ...]) -> None:
    a = np.ones(shape)
    for name, wanted in (("inv", np.linalg.inv), ("det", np.linalg.det), ("cholesky", np.linalg.cholesky)):
        np.testing.assert_array_equal(getattr(own, name)(a), wanted(a))
    assert own.solve(a, np.ones((*shape[:-1], 2))).shape == (*shape[:-1], 2)
    assert own.solve(a, np.ones((*shape[:-1], 0))).shape == (*shape[:-1], 0)
    assert [each.shape for each in own.eigh(a)] == [shape[:-1], shape]
    for given in (a, a[..., :0], a[..., :0, :]):
        for full in (False, True):
            assert [each.shape for each in own.svd(given, full)] == [each.shape for each in np.linalg.svd(given, full)]
        for mode in ("reduced", "complete"):
            assert [each.shape for each in own.qr(given, mode)] == [each.shape for each in np.linalg.qr(given, mode)]
    with flambeau.reproducible("machine"):
        assert [each.shape for each in own.slogdet(a)] == [shape[:-2]] * 2
    assert own.triangle_solved(a, np.ones((*shape[:-1], 2)), True, False).shape == (*shape[:-1], 2)


@pytest.mark.parametrize("name", ["solve", "inv", "det", "cholesky", "qr", "eigh", "svd"])
def test_a_matrix_gives_the_same_alone_as_among_others(name: str) -> None:
    a = _drawn((6, 5, 5)) * np.array([1, 1e-8, 1e8, 1, 3, 1])[:, None, None]
    a = a @ _turned(a) if name == "cholesky" else a
    more = {"solve": (_drawn((6, 5, 2)),), "qr": ("reduced",)}.get(name, ())
    whole = getattr(own, name)(a, *more)
    for sample in range(6):
        given = [each if isinstance(each, str) else each[sample : sample + 1] for each in more]
        alone = getattr(own, name)(a[sample : sample + 1], *given)
        for one, other in zip(*(each if type(each) is tuple else (each,) for each in (alone, whole)), strict=True):
            assert one.tobytes() == other[sample : sample + 1].tobytes()
