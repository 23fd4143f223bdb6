"""Products of sparse matrices with dense and sparse ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backends import arrays as array_functions
from ..._core.arrays.lazy_signs import content
from ..._core.arrays.sparse import (
    COO,
    CSR,
    CompressedArray,
    CooArray,
    accumulating,
    coalesced_array,
    compressed_from_coo,
    each_row,
    group_numbers,
    group_starts,
)
from ..._core.backend import read
from ..._core.dtype import LEGACY_NAMES
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.sparse import SparseTensor, dense_tensor, sparse_tensor
from ..._core.tensor import Tensor
from ..._dispatch.arguments.promotion import Number, is_number
from ..._dispatch.dispatch import Array
from ..._dispatch.public.registry import public
from ..linalg.lobpcg import lobpcg
from ..linalg.matmul import hermitian
from .dispatch import about_sparse, implements, sparse_primitive
from .math import _conj
from .move import transposed
from .tensors import as_coo, as_dense, sparse_mask

_AT_ONCE = 1 << 17
"""As many products are formed at once at most, and added up before the next are."""

_REDUCTIONS = ("sum", "mean", "amax", "amin")


def _adjoint(matrix: Any) -> Tensor:
    return transposed(_conj(matrix)) if isinstance(matrix, SparseTensor) else hermitian(matrix)


# ----- sparse and dense --------------------------------------------------------------------------------------------


def _by_rows(array: Any) -> tuple[Any, Any, Any]:
    """Rows in rising order, columns and values of the elements of a matrix."""
    array = as_coo(array)
    rows, columns, values = array.indices[0], array.indices[1], array.values
    return (rows, columns, values) if array.coalesced else _ordered(rows, columns, values)


def _ordered(rows: Any, columns: Any, values: Any) -> tuple[Any, Any, Any]:
    order = np.argsort(rows, kind="stable")
    return rows[order], columns[order], values[order]


def _product(sparse: Any, dense: Any, adjoint: bool = False) -> Any:
    """A sparse matrix, or its adjoint, times a dense one: the rows that its elements name, scaled and added up."""
    array = as_coo(sparse)
    rows, columns = each_row(array.indices)
    values, height, in_order = array.values, sparse.shape[0], array.coalesced
    if adjoint:
        rows, columns, values, height, in_order = columns, rows, np.conj(values), sparse.shape[1], False
    done = array_functions.sparse_product(rows, columns, values, dense, height)
    if done is not None:
        return done
    if not in_order:
        rows, columns, values = _ordered(rows, columns, values)
    values, wide = accumulating(values), accumulating(dense)
    result = np.zeros((height, dense.shape[1]), np.result_type(values, wide), like=values)
    step = max(1, _AT_ONCE // max(dense.shape[1], 1))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        starts = group_starts(rows[part])
        # A row may go on in the next part: it is added to, not set.
        result[rows[part][starts]] += np.add.reduceat(values[part, None] * wide[columns[part]], starts, axis=0)
    return result.astype(dense.dtype, copy=False)


def _sampled(mask: Any, left: Any, right: Any) -> Any:
    """The elements of the dense product of two matrices at the places of `mask`, which is by coordinates."""
    at, across = each_row(mask.indices)
    done = array_functions.sampled_product(at, across, left, right)
    if done is not None:
        return done
    left, right = accumulating(left), accumulating(right)
    result = np.zeros(mask.nnz, left.dtype, like=left)
    step = max(1, _AT_ONCE // max(left.shape[1], 1))
    for start in range(0, mask.nnz, step):
        rows, columns = at[start : start + step], across[start : start + step]
        one, other = left[rows], right.T[columns]
        if REPRODUCIBILITY.total is not None and type(one) is np.ndarray:
            result[start : start + step] = REPRODUCIBILITY.total(one * other, (1,), False)
        else:
            result[start : start + step] = np.einsum("ij,ij->i", one, other)
    return result


def _sampled_left(grad: Tensor, mask: Tensor, right: Tensor) -> Any:
    return _masked_product(sparse_mask(grad, mask), hermitian(right))


def _sampled_right(grad: Tensor, mask: Tensor, left: Tensor) -> Tensor:
    return hermitian(_masked_product(_adjoint(sparse_mask(grad, mask)), left))


@sparse_primitive("SparseSampledAddmmBackward0", left=_sampled_left, right=_sampled_right)
def _sampled_product(mask: Array, left: Array, right: Array) -> Array:
    """The product of two dense matrices at the places of `mask` only."""
    if isinstance(mask, CompressedArray):
        found = _sampled(mask.by_coordinates(coalesced=False), left, right)  # in the order of the values
        return mask.with_values(found.reshape(mask.values.shape).astype(left.dtype, copy=False))
    mask = coalesced_array(mask)
    return CooArray(mask.indices, _sampled(mask, left, right).astype(left.dtype, copy=False), mask.shape, True)


def _product_left(grad: Tensor, self: Tensor, mat2: Tensor) -> Any:
    return _sampled_product(self, as_dense(grad), hermitian(mat2))


def _product_right(grad: Tensor, self: Tensor) -> Any:
    return _adjoint_product(self, as_dense(grad))


def _adjoint_product_right(grad: Tensor, self: Tensor) -> Any:
    return _masked_product(self, as_dense(grad))


@sparse_primitive(
    "SparseAddmmBackward0",
    self=lambda grad, self, mat2: _sampled_product(self, mat2, hermitian(as_dense(grad))),
    mat2=_adjoint_product_right,
)
def _adjoint_product(self: Array, mat2: Array) -> Array:
    """The adjoint of a sparse matrix times a dense one."""
    return _product(self, mat2, adjoint=True)


@sparse_primitive("SparseAddmmBackward0", self=_product_left, mat2=_product_right)
def _masked_product(self: Array, mat2: Array) -> Array:
    """A sparse matrix times a dense one. The gradient of the sparse one has its places only."""
    return _product(self, mat2)


@sparse_primitive("MmBackward0", self=lambda grad, mat2: as_dense(grad).mm(hermitian(mat2)), mat2=_product_right)
def _full_product(self: Array, mat2: Array) -> Array:
    """A sparse matrix times a dense one. The gradient of the sparse one is dense, as that of dense matrices is."""
    return _product(self, mat2)


# ----- sparse and sparse -------------------------------------------------------------------------------------------


def _join(left: Any, right: Any) -> CooArray:
    """The product of two sparse matrices: each element of the left with the row of the right that it meets."""
    rows, columns, values = _by_rows(left)
    other = right if right.layout is CSR else compressed_from_coo(as_coo(right), CSR)
    starts, ends = other.compressed[columns], other.compressed[columns + 1]
    counts = ends - starts
    total = int(read(counts.sum()))
    begins = np.concatenate((np.zeros(1, np.int64, like=counts), np.cumsum(counts)))
    first = group_numbers(begins, total)
    place = np.arange(total, like=first) - begins[first] + starts[first]
    indices = np.stack((rows[first], other.plain[place].astype(np.int64)))
    shape = (left.shape[0], right.shape[1])
    return coalesced_array(CooArray(indices, values[first] * other.values[place], shape))


@sparse_primitive(
    "SparseSparseMatmulBackward0",
    self=lambda grad, self, other: sparse_mask(_any_product(grad, _adjoint(other)), self),
    other=lambda grad, self, other: sparse_mask(_any_product(_adjoint(self), grad), other),
)
def _joined(self: Array, other: Array) -> Array:
    result = _join(self, other)
    return self.like(result)


# ----- what users call ---------------------------------------------------------------------------------------------


def _check_tensors(name: str, *operands: Any) -> None:
    for position, each in enumerate(operands, 1):
        if not isinstance(each, Tensor):
            raise TypeError(f"{name}(): argument {position} must be Tensor, not {type(each).__name__}")


def _check_matrices(left: Tensor, right: Tensor, name: str) -> None:
    _check_tensors(name, left, right)
    if left._array.ndim != 2 or right._array.ndim != 2:
        raise RuntimeError(
            f"{name}: 2D tensors expected, but got {left._array.ndim}D and {right._array.ndim}D tensors of shapes "
            f"{list(left.shape)} and {list(right.shape)}"
        )
    for each in (left, right):
        if each.layout is COO and each._array.sparse_dim != 2:
            raise RuntimeError(f"{name}: expected 2 sparse dimensions, but a tensor has {each._array.sparse_dim}")
    if left.shape[1] != right.shape[0]:
        raise RuntimeError(
            f"addmm: Argument #3 (dense): Expected dim 0 size {left.shape[1]}, got {right.shape[0]}: {name} of shapes "
            f"{list(left.shape)} and {list(right.shape)}"
        )
    if left.dtype is not right.dtype:
        raise RuntimeError(
            f"addmm: expected the same dtype for all matrices, but got {LEGACY_NAMES[left.dtype]} and "
            f"{LEGACY_NAMES[right.dtype]}"
        )


def _any_product(left: Any, right: Any, name: str = "sparse.mm", masked: bool = True) -> Tensor:
    _check_matrices(left, right, name)
    if isinstance(left, SparseTensor):
        if isinstance(right, SparseTensor):
            return _joined(left, right)
        return (_masked_product if masked else _full_product)(left, right)
    if isinstance(right, SparseTensor):
        turned = _any_product(transposed(right), left.transpose(0, 1), name, masked).transpose(0, 1)
        return turned if right.layout is COO else turned.contiguous()
    product: Tensor = left.mm(right)
    return product


@public("sparse.mm", name="_sparse_mm", method=False)
@about_sparse
def sparse_mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of two matrices of which one is sparse, or both; the gradient of a sparse one has its places only.

    With `reduce` ("sum", "mean", "amax" or "amin") the products of a row of a CSR matrix are combined in that way.
    """
    if reduce is None:
        return _any_product(mat1, mat2)
    if not isinstance(reduce, str):
        raise TypeError(f"_sparse_mm(): argument 'reduce' (position 3) must be str, not {type(reduce).__name__}")
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"unknown reduce operator {reduce}: it must be one of {', '.join(_REDUCTIONS)}")
    if mat1.layout is not CSR or isinstance(mat2, SparseTensor):
        raise RuntimeError(
            f"torch.sparse.mm with reduce: expected a CSR matrix and a dense one, but got {mat1.layout} and "
            f"{mat2.layout}"
        )
    _check_matrices(mat1, mat2, "sparse.mm")
    return _reduced_product(mat1, mat2, reduce)


@public("sparse.addmm", name="_sparse_addmm", method=False)
@about_sparse
def sparse_addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1.0, alpha: Number = 1.0) -> Tensor:
    """`beta * mat + alpha * (mat1 @ mat2)` with a sparse `mat1`, whose gradient has its places only."""
    return _with_sum(mat, _any_product(mat1, mat2, "sparse.addmm"), beta, alpha)


def _with_sum(mat: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    if mat.dtype is not product.dtype:
        raise RuntimeError(f"addmm: expected all matrices to have dtype {product.dtype}, but one has {mat.dtype}")
    if isinstance(mat, SparseTensor) and not isinstance(product, SparseTensor):
        raise NotImplementedError("addmm: a sparse matrix plus a dense product; exchange them, or use .to_dense()")
    product = product if _is_one(alpha) else product * alpha
    if is_number(beta) and beta == 0:
        return product  # what is not finite in `mat` does not count then
    scaled = mat if _is_one(beta) else mat * beta
    return product + scaled.expand(tuple(product.shape)) if not isinstance(mat, SparseTensor) else product + scaled


def _is_one(number: Any) -> bool:
    return is_number(number) and number == 1


@implements("mm", "_spmm")
def mm(input: Any, mat2: Any) -> Any:
    return _any_product(input, mat2, "mm", masked=False)


@implements("mv")
def mv(input: Any, vec: Any) -> Any:
    _check_tensors("mv", input, vec)
    if vec._array.ndim != 1 or isinstance(vec, SparseTensor):
        raise RuntimeError(f"mv: expected a dense vector, but it has shape {list(vec.shape)} in layout {vec.layout}")
    return mm(input, vec.unsqueeze(1)).squeeze(1)


@implements("matmul", "linalg.matmul")
def matmul(input: Any, other: Tensor) -> Any:
    _check_tensors("matmul", input, other)
    dims = input._array.ndim, other._array.ndim
    if dims == (2, 1):
        return mv(input, other)
    if dims == (1, 2) and not isinstance(input, SparseTensor):
        return mm(input.unsqueeze(0), other).squeeze(0)
    if dims == (2, 2):
        return mm(input, other)
    raise NotImplementedError(
        f"matmul with sparse tensors of shapes {list(input.shape)} and {list(other.shape)}: only matrices and vectors "
        "are implemented"
    )


@implements("__rmatmul__")
def rmatmul(input: Any, other: Any) -> Any:
    return matmul(other, input)


@implements("addmm")
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _with_sum(input, mm(mat1, mat2), beta, alpha)


implements("lobpcg")(lobpcg)  # it multiplies, and asks for nothing else


# ----- sampled products --------------------------------------------------------------------------------------------


@public("sparse.sampled_addmm", function=False, method=False, out=True)
@about_sparse
def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1.0, alpha: Number = 1.0) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)` at the places of the CSR matrix `input` only."""
    for name, each in (("mat1", mat1), ("mat2", mat2)):
        if not isinstance(each, Tensor):
            raise TypeError(f"sparse_sampled_addmm(): argument '{name}' must be Tensor, not {type(each).__name__}")
    _check_sampled(input, mat1, mat2)
    product = _sampled_product(input, mat1, mat2)
    product = product if _is_one(alpha) else product * alpha
    if is_number(beta) and beta == 0:
        return product
    return _plus_at_places(product, input if _is_one(beta) else input * beta)


@sparse_primitive("SparseSampledAddmmBackward0", self=lambda grad: grad, other=lambda grad: grad)
def _plus_at_places(self: Array, other: Array) -> Array:
    """The sum of two sparse arrays that have the same places."""
    return self.with_values(self.values + other.values)


def _check_sampled(input: Any, mat1: Any, mat2: Any) -> None:
    if input.layout is not CSR:
        raise NotImplementedError(f"sampled_addmm: Expected self to have sparse csr layout, but got {input.layout}")
    if isinstance(mat1, SparseTensor) or isinstance(mat2, SparseTensor):
        raise RuntimeError("sampled_addmm: Expected mat1 and mat2 to have strided layout")
    if mat1._array.ndim != 2 or mat2._array.ndim != 2:
        raise RuntimeError(
            f"sampled_addmm: Expected mat1 and mat2 to be matrices, but they have shapes {list(mat1.shape)} and "
            f"{list(mat2.shape)}"
        )
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({mat1.shape[0]}x{mat1.shape[1]} and "
            f"{mat2.shape[0]}x{mat2.shape[1]})"
        )
    if tuple(input.shape) != (mat1.shape[0], mat2.shape[1]):
        raise RuntimeError(
            f"sampled_addmm: self has shape {list(input.shape)}, the product has {[mat1.shape[0], mat2.shape[1]]}"
        )
    for each in (mat1, mat2):
        if each.dtype is not input.dtype:
            raise RuntimeError(
                f"sampled_addmm: Expected all matrices to have dtype {input.dtype}, but one has {each.dtype}"
            )


# ----- products of rows, otherwise combined ------------------------------------------------------------------------


def _chosen(array: Any, other: Any, reduce: str) -> tuple[Any, Any]:
    """For each row that has elements and each column the element whose product is the largest or smallest."""
    rows, columns, values = _by_rows(array)
    products = accumulating(values)[:, None] * accumulating(other)[columns]
    if not len(rows):
        return rows, np.zeros((0, other.shape[1]), np.int64, like=rows)
    starts = group_starts(rows)
    best = (np.maximum if reduce == "amax" else np.minimum).reduceat(products, starts, axis=0)
    group = np.searchsorted(starts, np.arange(len(rows), like=starts), side="right") - 1
    is_best = (products == best[group]) | (np.isnan(products) & np.isnan(best[group]))
    places = np.where(is_best, np.arange(len(rows), like=rows)[:, None], len(rows))
    return rows[starts], np.minimum.reduceat(places, starts, axis=0)


def _reduced_gradients(grad: Tensor, self: Tensor, other: Tensor, reduce: str, of_self: bool) -> Any:
    if reduce in ("sum", "mean"):
        if reduce == "mean":
            counts = dense_tensor(np.maximum(np.diff(self._array.compressed), 1).astype(grad._array.dtype), grad)
            grad = grad / counts.unsqueeze(1)
        if of_self:
            return _sampled_product(self, grad, hermitian(other))
        return _masked_product(_adjoint(self), grad)
    array, dense, given = self._array, content(other), content(grad)
    rows, places = _chosen(array, dense, reduce)
    columns = np.broadcast_to(np.arange(dense.shape[1], like=places), places.shape)
    arriving = accumulating(given)[rows]
    if of_self:
        values = np.zeros(array.nnz, arriving.dtype, like=arriving)
        found = arriving * accumulating(dense)[array.plain[places], columns]
        np.add.at(values, places.reshape(-1), found.reshape(-1))
        return sparse_tensor(array.with_values(values.astype(array.dtype, copy=False)), self.device)
    total = np.zeros(dense.size, arriving.dtype, like=arriving)
    flat = array.plain[places] * dense.shape[1] + columns
    np.add.at(total, flat.reshape(-1), (arriving * accumulating(array.values)[places]).reshape(-1))
    return dense_tensor(total.reshape(dense.shape).astype(dense.dtype, copy=False), other)


@sparse_primitive(
    "SparseMmReduceImplBackward0",
    self=lambda grad, self, other, reduce: _reduced_gradients(grad, self, other, reduce, True),
    other=lambda grad, self, other, reduce: _reduced_gradients(grad, self, other, reduce, False),
)
def _reduced_product(self: Array, other: Array, reduce: str) -> Array:
    if reduce == "sum":
        return _product(self, other)
    if reduce == "mean":
        counts = np.maximum(np.diff(self.compressed), 1)[:, None]
        wide = accumulating(other)
        total = _product(self.with_values(accumulating(self.values)), wide)
        return (total / counts.astype(wide.dtype)).astype(other.dtype, copy=False)
    rows, places = _chosen(self, other, reduce)
    result = np.zeros((self.shape[0], other.shape[1]), other.dtype, like=other)
    columns = np.broadcast_to(np.arange(other.shape[1], like=places), places.shape)
    products = accumulating(self.values)[places] * accumulating(other)[self.plain[places], columns]
    result[rows] = products.astype(other.dtype, copy=False)
    return result
