"""Sparse matrices by rows."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import flambeau
from tests.support.differential import outcome

from .both import matrix, rows, same


@same
def test_construction_and_parts(T: Any) -> Any:
    c = rows(T)
    made = T.sparse_csr_tensor(T.tensor([0, 1], dtype=T.int32), T.tensor([2], dtype=T.int32), T.tensor([1]))
    return [
        c,
        made,
        rows(T, dtype=T.float64, requires_grad=True),
        T.sparse_csr_tensor([0, 0], T.zeros(0, dtype=T.int64), T.zeros(0), (1, 3)),
        (c.layout, c.is_sparse, c.is_sparse_csr, c.shape, c._nnz(), c.sparse_dim(), c.dense_dim(), c.numel()),
        (c.crow_indices(), c.col_indices(), c.values()),
        repr(c),
        repr(c.double()),
        repr(made),
    ]


@same
def test_conversions(T: Any) -> Any:
    c = rows(T)
    return [
        c.to_dense(),
        c.to_sparse(),
        c.to_sparse_coo(),
        matrix(T).to_sparse_csr(),
        T.eye(3).to_sparse_csr(),
        T.zeros(2, 3).to_sparse_csr(),
        T.eye(2).to_sparse(layout=T.sparse_csr),
        c.to(T.float64),
        c.clone(),
        c.detach(),
        c.to_sparse_csr() is c,
        c.t(),
        c[0],
    ]


@same
def test_arithmetic(T: Any) -> Any:
    c = rows(T)
    dense = T.arange(6.0).reshape(2, 3)
    return [
        c * 2,
        -c,
        c.sin(),
        c.abs(),
        c * c,
        dense + c,
        c.sum(),
        c @ T.arange(6.0).reshape(3, 2),
        c @ T.arange(3.0),
        T.sparse.mm(c, T.ones(3, 2)),
        T.mv(c, T.ones(3)),
        T.addmm(T.ones(2, 2), c, T.ones(3, 2), beta=2, alpha=3),
    ]


@same
def test_products_of_rows_reduced(T: Any) -> Any:
    c = T.sparse_csr_tensor([0, 2, 2, 4], [0, 2, 1, 2], [3.0, -4.0, 5.0, 1.0], (3, 3), requires_grad=True)
    dense = T.tensor([[1.0, -2.0], [3.0, 0.5], [-1.0, 2.0]], requires_grad=True)
    observed = []
    for reduce in ("sum", "mean", "amax", "amin"):
        c.grad = dense.grad = None
        result = T.sparse.mm(c, dense, reduce)
        (result * T.arange(6.0).reshape(3, 2)).sum().backward()
        observed.append((result, c.grad, dense.grad))
    return observed


@same
def test_diagonals(T: Any) -> Any:
    rows, places, spdiags = T.arange(9.0).reshape(3, 3), T.tensor([0, 1, -1]), T.sparse.spdiags
    layouts = T.sparse_coo, T.sparse_csr, T.sparse_csc
    wrong = [
        (rows, T.tensor([0, 1, 1]), (3, 4), "duplicate"),
        (rows, T.tensor([0, 1]), (3, 4), "does not match the number of offsets"),
        (rows, places, (3, 4, 1), "Output shape must be 2d"),
        (rows, places.float(), (3, 4), "must have dtype Long"),
        (rows[None], places, (3, 4), "must be vector or matrix"),
        (rows, places[None], (3, 4), "must be scalar or vector"),
        (rows, places, (3, 4), T.strided, "Only output layouts"),
    ]
    return {
        "sizes": [spdiags(rows, places, size).to_dense() for size in ((3, 4), (4, 3), (1, 5))],
        "order": (spdiags(rows, places, (3, 4))._indices(), spdiags(rows, places, (3, 4)).is_coalesced()),
        "layouts": [str(spdiags(rows, places, (3, 3), each).layout) for each in layouts],
        "one": spdiags(rows[0], T.tensor(1), (3, 3)).to_dense(),
        "refused": [outcome(lambda call=call: spdiags(*call[:-1]), call[-1]) for call in wrong],
    }


@same
def test_sampled_products(T: Any) -> Any:
    c = rows(T, dtype=T.float64)
    left, right = T.arange(8.0, dtype=T.float64).reshape(2, 4), T.arange(12.0, dtype=T.float64).reshape(4, 3)
    left.requires_grad_()
    right.requires_grad_()
    result = T.sparse.sampled_addmm(c, left, right, beta=0.5, alpha=2.0)
    result.to_dense().sum().backward()
    return [
        result.detach(),
        left.grad,
        right.grad,
        T.sparse.sampled_addmm(c, left, right).detach(),
        outcome(lambda: T.sparse.sampled_addmm(c, left, left), "cannot be multiplied"),
        outcome(lambda: T.sparse.sampled_addmm(c.to_sparse(), left, right)),
    ]


@same
def test_errors(T: Any) -> Any:
    c = rows(T)
    return [
        outcome(c.indices, "indices expected sparse coordinate tensor layout but got SparseCsr"),
        outcome(c.is_coalesced, "is_coalesced expected sparse coordinate tensor layout but got SparseCsr"),
        outcome(T.ones(2, 2).crow_indices, "crow_indices expected sparse row compressed tensor layout but got Strided"),
    ]


def test_what_is_not_implemented_says_so() -> None:
    c = rows(flambeau)
    for action in (c.exp, lambda: c @ c, lambda: flambeau.sparse.softmax(c, 1)):
        with pytest.raises((NotImplementedError, RuntimeError), match=r"CSR|SparseCsrCPU|sparse_csr|shapes"):
            action()


def test_wrong_parts_are_refused() -> None:
    make = flambeau.sparse_csr_tensor
    with pytest.raises(RuntimeError, match="crow_indices must begin with 0, rise, and end"):
        make([0, 1, 3], [0, 1], [1.0, 2.0], (2, 3))
    with pytest.raises(RuntimeError, match="col_indices must be from 0 to 2"):
        make([0, 1, 2], [0, 5], [1.0, 2.0], (2, 3))
    with pytest.raises(RuntimeError, match="number of rows"):
        make([0, 2], [0, 1], [1.0, 2.0], (2, 3))


def test_deep_copy() -> None:
    c = rows(flambeau)
    made = copy.deepcopy(c)
    made.values().zero_()
    assert c.to_dense().sum() == 12
    assert made.to_dense().sum() == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x.to_dense(), lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x * x, lambda x, y: x @ y.t(),
        lambda x, y: x.to_sparse_coo().coalesce(), lambda x, y: x.to_sparse_csc(), lambda x, y: x.sparse_mask(y),
        lambda x, y: flambeau.sparse.sum(x.to_sparse_coo(), 0),
    ],
)  # fmt: skip
def test_the_columns_of_a_row_need_not_be_in_order(call: Any) -> None:
    """Results and gradients are those of the same matrix with its columns in order."""
    starts, order = flambeau.tensor([0, 1, 3, 6]), [0, 2, 1, 4, 5, 3]
    columns, others = flambeau.tensor([3, 2, 0, 3, 0, 1]), flambeau.tensor([1, 0, 2, 1, 3, 0])
    other = flambeau.sparse_csr_tensor(starts, others, flambeau.arange(2.0, 8), (3, 4))
    found = []
    for arranged in (list(range(6)), order):
        values: Any = flambeau.arange(1.0, 7)[arranged].requires_grad_()
        result = call(flambeau.sparse_csr_tensor(starts, columns[arranged], values, (3, 4)), other)
        result = result if result.layout is flambeau.strided else result.to_dense()
        (result * flambeau.arange(1.0, result.numel() + 1).reshape(result.shape)).sum().backward()
        found.append((result.detach(), values.grad))
    (one, grad), (same, ordered_grad) = found
    assert flambeau.equal(one, same)
    assert flambeau.equal(grad[order], ordered_grad)
