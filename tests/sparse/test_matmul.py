"""Products of sparse matrices, beside the dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau
from flambeau._ops.sparse import matmul as sparse_matmul
from flambeau.backends.cpu import numpy_only

from .both import matrix, same


def _random(seed: int, shape: tuple[int, ...], count: int, dtype: Any = None) -> tuple[Any, Any]:
    """A sparse matrix with repeated places, and the same as a dense one."""
    generator = np.random.default_rng(seed)
    indices = np.stack([generator.integers(0, length, count) for length in shape])
    values = generator.integers(-4, 5, count).astype(np.float64)
    dense = np.zeros(shape)
    np.add.at(dense, tuple(indices), values)
    made = flambeau.sparse_coo_tensor(indices, values, shape, dtype=dtype)
    return made, flambeau.tensor(dense, dtype=dtype or flambeau.float64)


@same
def test_kinds_of_products(T: Any) -> Any:
    s = matrix(T)
    right = T.arange(6.0).reshape(3, 2)
    return [
        s @ right,
        s.mm(right),
        T.sparse.mm(s, right),
        T.matmul(s, T.arange(3.0)),
        s.mv(T.arange(3.0)),
        T.arange(4.0).reshape(2, 2) @ s,
        T.sparse.addmm(T.ones(2, 2), s, right, beta=0.5, alpha=2.0),
        T.addmm(T.ones(2, 2), s, right),
        T.sparse.mm(s, s.t()),
        T.sparse.mm(s.to(T.complex64) * 1j, right.to(T.complex64)),
        s @ right.t().contiguous().t(),
        T.sparse_coo_tensor(size=(2, 3)) @ right,
        T.sparse_coo_tensor(size=(0, 3)) @ right,
        T.sparse.mm(s, T.zeros(3, 0)),
    ]


@pytest.mark.parametrize("at_once", [1, 7, 1 << 17])
def test_random_products_in_pieces(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_matmul, "_AT_ONCE", at_once)
    with numpy_only():
        test_random_products()


def test_random_products() -> None:
    for seed in range(5):
        left, dense_left = _random(seed, (6, 5), 20)
        right, dense_right = _random(seed + 100, (5, 7), 15)
        expected = dense_left @ dense_right
        for product in (
            left @ dense_right,
            dense_left @ right,
            (left @ right).to_dense(),
            left.to_sparse_csr() @ dense_right,
            (left.to_sparse_csr() @ right.to_sparse_csr()).to_dense(),
        ):
            assert flambeau.equal(product, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_wide_rows_with_gaps(dtype: str) -> None:
    kind: Any = getattr(flambeau, dtype)
    left, dense_left = _random(3, (60, 50), 400, kind)
    right = flambeau.arange(50 * 203).reshape(50, 203).remainder(17).to(kind)
    for dense in (right[:, :200], right[:, 1:202], right[:, ::2], right.t().contiguous().t()):
        given: Any = dense.detach().requires_grad_()
        product = flambeau.sparse.mm(left, given)
        product.backward(product.detach())
        expected = dense_left @ dense
        assert flambeau.equal(product, expected)
        assert flambeau.equal(given.grad, dense_left.t() @ expected)


@pytest.mark.parametrize(("row", "place"), [(0, 2), (0, -3), (1, 3), (1, -4)])
def test_places_moved_beyond_the_matrix(row: int, place: int) -> None:
    moved = flambeau.sparse_coo_tensor([[0, 1], [0, 2]], [1.0, 2.0], (2, 3))
    moved._indices()[row, 1] = place
    with pytest.raises(IndexError):
        flambeau.sparse.mm(moved, flambeau.ones(3, 4))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64", "int8", "complex128"])
def test_dtypes(dtype: str) -> None:
    left, dense_left = _random(1, (6, 5), 12, getattr(flambeau, dtype))
    right = flambeau.arange(10).reshape(5, 2).to(left.dtype)
    product = flambeau.sparse.mm(left, right)
    assert product.dtype is left.dtype
    assert flambeau.equal(
        product, (dense_left.to(flambeau.complex128) @ right.to(flambeau.complex128)).real.to(left.dtype)
    )


def test_elementwise_with_random_places() -> None:
    for seed in range(10):
        left, dense_left = _random(seed, (4, 3, 2), 15)
        right, dense_right = _random(seed + 50, (4, 3, 2), 15)
        for a in (left, left.coalesce()):
            for b in (right, right.coalesce()):
                assert flambeau.equal((a + b).to_dense(), dense_left + dense_right)
                assert flambeau.equal((a - b * 2).to_dense(), dense_left - dense_right * 2)
                assert flambeau.equal((a * b).to_dense(), dense_left * dense_right)
                assert flambeau.equal((a * dense_right).to_dense(), dense_left * dense_right)
                assert flambeau.equal(dense_left + b, dense_left + dense_right)
            assert flambeau.equal(a.abs().to_dense(), dense_left.abs())
            for dim in (0, 1, 2, (0, 1), (1, 2)):
                total = flambeau.sparse.sum(a, dim)
                assert flambeau.equal(total.to_dense(), dense_left.sum(dim))


@same
def test_half_precision_is_added_up_in_single(T: Any) -> Any:
    s = T.sparse_coo_tensor(T.zeros(1, 300, dtype=T.int64), T.full((300,), 0.1, dtype=T.float16), (2,))
    return s.coalesce().values() > 29, s.coalesce().values().dtype


def test_a_matrix_that_does_not_fit_is_named() -> None:
    s = matrix(flambeau)
    with pytest.raises(RuntimeError, match=r"\[2, 3\] and \[2, 3\]"):
        flambeau.sparse.mm(s, flambeau.ones(2, 3))
    with pytest.raises(RuntimeError, match="the same dtype"):
        flambeau.sparse.mm(s, flambeau.ones(3, 2, dtype=flambeau.float64))
    with pytest.raises(NotImplementedError, match="only matrices and vectors"):
        flambeau.matmul(s, flambeau.ones(4, 3, 2))


def test_the_switch_for_checks() -> None:
    def observe(T: Any) -> Any:
        switch = T.sparse.check_sparse_tensor_invariants
        before = switch.is_enabled()
        with switch(True):
            inside = switch.is_enabled()
            with switch(enable=False):
                deeper = switch.is_enabled()
        decorated = switch()(switch.is_enabled)()
        switch.enable()
        after = switch.is_enabled()
        switch.disable()
        return before, inside, deeper, decorated, after, switch.is_enabled()

    assert observe(pytorch) == observe(flambeau)
