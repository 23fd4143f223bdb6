"""Older names of products with sparse matrices."""

from __future__ import annotations

from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.public.registry import public
from ..create.range import arange
from ..linalg.addmm import older_orders
from ..shape.join import cat, stack
from .dispatch import about_sparse
from .matmul import sparse_mm
from .tensors import sparse_coo_tensor


def _check_sparse(name: str, tensor: Tensor) -> None:
    if not tensor.is_sparse:
        raise RuntimeError(f"tensor.{name}(...) can only be called on sparse tensors")


def _write(result: Tensor, out: Tensor, operands: tuple[Any, ...]) -> Tensor:
    """Store a sparse result in the sparse tensor given as `out=`."""
    _check_sparse("out", out)
    return out.copy_(result)


@public("dsmm", method=False)
@about_sparse
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`input @ mat2` of a sparse and a dense matrix."""
    return sparse_mm(input, mat2)


@public(method=False)
@about_sparse
def hsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix as a sparse tensor of rows: those that the sparse matrix has."""
    if not input.is_sparse or mat2.is_sparse:
        raise NotImplementedError("Could not run 'aten::hspmm': it takes a sparse and a dense matrix")
    rows = input.coalesce().indices()[0].unique()
    product = sparse_mm(input, mat2)
    return sparse_coo_tensor(rows.unsqueeze(0), product.index_select(0, rows), product.shape)


@public(method=False, out=_write)
@about_sparse
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix as a sparse tensor of rows."""
    return hsmm(mat1, mat2)


def _by_elements(rows: Tensor) -> Tensor:
    """A sparse tensor of whole rows as one of single elements, zeros among them included."""
    parts = rows.coalesce()
    values, index = parts.values(), parts.indices()[0]
    width = values.shape[1]
    places = stack([index.repeat_interleave(width), _columns(len(index), width)])
    return sparse_coo_tensor(places, values.reshape(-1), rows.shape)


def _columns(rows: int, width: int) -> Tensor:
    return arange(width).repeat(rows)


@public()
@about_sparse
def smm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix, as a sparse tensor."""
    _check_sparse("sspaddmm", input)
    return _by_elements(hsmm(input, mat2))


@public("saddmm", out=_write, older=older_orders("mat1 mat2"))
@about_sparse
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * input + alpha * mat1 @ mat2` with sparse `input` and `mat1`, as a sparse tensor."""
    _check_sparse("sspaddmm", input)
    product = smm(mat1, mat2)
    places = cat([input._indices(), product._indices()], 1)
    values = cat([input._values() * beta, product._values() * alpha])
    return sparse_coo_tensor(places, values, input.shape)
