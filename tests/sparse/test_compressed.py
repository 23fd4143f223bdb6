"""Sparse matrices by columns and of blocks."""

from __future__ import annotations

import io
from typing import Any

import pytest

import flambeau
from tests.support.differential import outcome

from .both import matrix, rows, same

pytestmark = pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta state")
LAYOUTS = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")


def made(T: Any, layout: str, **options: Any) -> Any:
    """A 4x6 matrix in a layout, with blocks of 2x3."""
    dense = T.tensor([[0, 1.0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 0, 4, 0, 5.0]], **options)
    return converted(T, dense, layout)


def converted(T: Any, value: Any, layout: str) -> Any:
    return value.to_sparse(layout=getattr(T, layout), blocksize=(2, 3) if layout[7] == "b" else None)


@same
def test_construction(T: Any) -> Any:
    columns = T.sparse_csc_tensor([0, 1, 1, 2], [1, 0], [4.0, 3.0], (2, 3))
    blocks = T.sparse_bsr_tensor([0, 1, 2], [1, 0], T.arange(12.0).reshape(2, 2, 3), (4, 6), dtype=T.float64)
    return [
        columns,
        blocks,
        T.sparse_csc_tensor([0, 1, 1, 2], [1, 0], [4.0, 3.0], requires_grad=True),
        T.sparse_bsc_tensor(T.tensor([0, 1, 2], dtype=T.int32), T.tensor([1, 0], dtype=T.int32), T.ones(2, 1, 2)),
        [
            T.sparse_compressed_tensor([0, 1, 2], [0, 1], T.ones(2, *block), layout=getattr(T, layout))
            for layout, block in zip(LAYOUTS, ((), (), (2, 2), (2, 2)), strict=True)
        ],
        [(repr(each), each.is_sparse, each.is_sparse_csr, each._nnz()) for each in (columns, blocks)],
        (columns.ccol_indices(), columns.row_indices(), columns.values(), blocks.crow_indices(), blocks.col_indices()),
        (T.ccol_indices_copy(columns), T.row_indices_copy(columns)),
        (T.crow_indices_copy(blocks), T.col_indices_copy(blocks)),
    ]


@same
def test_conversions(T: Any) -> Any:
    sources = [made(T, each) for each in LAYOUTS]
    sources.append(sources[0].to_sparse_coo())
    found = [converted(T, source, target) for source in (*sources[:2], sources[4]) for target in LAYOUTS]
    found += [converted(T, source, target) for source in sources[2:4] for target in LAYOUTS[2:]]
    wide = made(T, "sparse_csr").to_dense()
    return [
        found,
        [each.to_dense() for each in found],
        [each.to_sparse_coo() for each in found],
        [wide.to_sparse_csc(), wide.to_sparse_bsr((2, 3)), wide.to_sparse_bsc((1, 2))],
        [rows(T).to_sparse_csc(), matrix(T).to_sparse_csc(), T.zeros(2, 3).to_sparse_bsr((1, 3))],
        [outcome(lambda each=each: each.to_sparse_csr(), "expected SparseCsr or SparseCsc") for each in sources[2:4]],
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
@same
def test_functions(T: Any, layout: str) -> Any:
    m = made(T, layout)
    return [
        [m * 2, -m, m.sin(), m.abs(), m.clone(), m.detach(), m.to(T.float64), m.t(), m.transpose(0, 1), m[0]],
        [T.zeros_like(m), m + m, m.sum(), T.ones(4, 6).sparse_mask(m), m.values()],
        (m.sparse_dim(), m.dense_dim(), m.is_sparse, m.is_sparse_csr, m._nnz(), repr(m)),
    ]


@pytest.mark.parametrize("layout", LAYOUTS[:2])
@same
def test_products(T: Any, layout: str) -> Any:
    m, dense = made(T, layout).requires_grad_(), T.arange(12.0).reshape(6, 2).requires_grad_()
    (m @ dense).square().sum().backward()
    plain = m.detach()
    return [
        (m.grad.to_dense(), dense.grad),
        (T.mm(plain, dense), T.ones(4, 6) + plain, T.ones(2, 4) @ plain),
        T.addmm(T.ones(4, 2), plain, dense.detach(), beta=2, alpha=3),
    ]


@pytest.mark.parametrize("layout", LAYOUTS[2:])
def test_products_of_blocks(layout: str) -> None:
    """PyTorch has them for square blocks only, with MKL."""
    m, dense = made(flambeau, layout).requires_grad_(), flambeau.arange(12.0).reshape(6, 2)
    (m @ dense).sum().backward()
    expected = m.detach().to_dense()
    assert (m @ dense).equal(expected @ dense)
    assert (m.detach() * m.detach()).to_dense().equal(expected * expected)
    assert m.grad is not None
    assert m.grad.to_dense().equal(flambeau.ones(4, 2) @ dense.T)


@pytest.mark.parametrize("layout", LAYOUTS)
@same
def test_gradients(T: Any, layout: str) -> Any:
    dense = made(T, layout).to_dense().requires_grad_()
    m = converted(T, dense, layout)
    m.to_dense().square().sum().backward()
    parts = made(T, layout)
    names = ("crow_indices", "col_indices") if layout.endswith("r") else ("ccol_indices", "row_indices")
    values = T.ones(parts.values().shape).requires_grad_()
    places = [getattr(parts, name)() for name in names]
    built = T.sparse_compressed_tensor(*places, values, (4, 6), layout=getattr(T, layout))
    (built.to_dense() * T.arange(24.0).reshape(4, 6)).sum().backward()
    return [m.grad_fn.name(), dense.grad, values.grad, built.grad_fn.name()]


@same
def test_older_names(T: Any) -> Any:
    m = matrix(T)
    larger = T.sparse_coo_tensor(size=(4, 6))
    return [
        T.saddmm(m, m, T.ones(3, 3), beta=2.0, alpha=3.0).to_dense(),
        T.resize_as_sparse_(matrix(T, coalesced=True), larger),
        T.sparse_coo_tensor(size=(1, 1)).resize_as_sparse_(m),
    ]


@same
def test_errors(T: Any) -> Any:
    columns, blocks = made(T, "sparse_csc"), made(T, "sparse_bsr")
    expected = "expected sparse column compressed tensor layout but got"
    return [
        outcome(columns.crow_indices, "crow_indices expected sparse row compressed tensor layout but got SparseCsc"),
        outcome(blocks.ccol_indices, f"ccol_indices {expected} SparseBsr"),
        outcome(T.ones(2, 2).row_indices, f"row_indices {expected} Strided"),
        outcome(lambda: T.ones(3, 3).to_sparse_bsr((2, 2)), "must be divisible by"),
        outcome(lambda: T.sparse_compressed_tensor([0, 1], [0], [1.0], layout=T.sparse_coo)),
    ]


def test_wrong_parts_are_refused() -> None:
    with pytest.raises(RuntimeError, match="ccol_indices must begin with 0, rise, and end"):
        flambeau.sparse_csc_tensor([0, 1, 3], [0, 1], [1.0, 2.0], (3, 2))
    with pytest.raises(RuntimeError, match="row_indices must be from 0 to 2"):
        flambeau.sparse_csc_tensor([0, 1, 2], [0, 5], [1.0, 2.0], (3, 2))
    with pytest.raises(RuntimeError, match="divisible by blocksize"):
        flambeau.sparse_bsr_tensor([0, 1], [0], [[[1.0, 2.0]]], (1, 3))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files(layout: str) -> None:
    file = io.BytesIO()
    flambeau.save(made(flambeau, layout), file)
    file.seek(0)
    loaded = flambeau.load(file)
    assert str(loaded.layout) == f"torch.{layout}"
    assert loaded.to_dense().equal(made(flambeau, layout).to_dense())
