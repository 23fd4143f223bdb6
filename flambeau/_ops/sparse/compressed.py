"""Sparse matrices by rows or by columns, of single elements or of blocks: making them, and looking into them."""

from __future__ import annotations

from typing import Any

from ..._core.arrays.sparse import BSC, BSR, COMPRESSED, COO, CSC, CSR
from ..._core.backend import read
from ..._core.dtype import LEGACY_NAMES, int32, int64
from ..._core.names.documentation import page
from ..._core.process.caller import warn_user_once
from ..._core.sparse import LAYOUT_NAMES, dense_tensor, sparse_tensor
from ..._core.tensor import Tensor
from ..._dispatch.dispatch import Array
from ..._dispatch.public.registry import public
from ..create.range import arange
from ..shape.join import cat
from .checks import check_compressed
from .dispatch import about_sparse, sparse_primitive
from .tensors import (
    as_indices,
    as_values,
    layout_name,
    leaf,
    refuse_meta,
    sparse_coo_tensor,
    to_compressed,
    values_like,
)


def _warn(kept_as: Any) -> None:
    short = str(kept_as).rpartition("_")[2].upper()
    warn_user_once(f"Sparse {short} tensor support is in beta state: {page('sparse')} says what there is.")


# ----- making them -------------------------------------------------------------------------------------------------


def _given_values(grad: Tensor, compressed: Tensor, plain: Tensor, values: Tensor, size: Any, kept_as: Any) -> Any:
    groups, others, kept = (each._array for each in (compressed, plain, values))
    places = COMPRESSED[kept_as](groups, others, kept, tuple(size))
    return values_like(grad, sparse_tensor(places, grad.device))


@sparse_primitive("SparseCompressedTensorBackward0", values=_given_values)
def _make(compressed: Array, plain: Array, values: Array, size: Any, kept_as: Any) -> Array:
    """The matrix with `values` at places that are in range."""
    return COMPRESSED[kept_as](compressed, plain, values, tuple(size))


def _implied_size(array: Any) -> tuple[int, int]:
    """As many groups as the compressed indices have, and as many others as the largest of the plain ones needs."""
    groups = max(array.compressed.shape[0] - 1, 0)
    others = int(read(array.plain.max())) + 1 if array.plain.size else 0
    height, width = array.blocksize
    rows, columns = (groups, others) if array.by_rows else (others, groups)
    return rows * height, columns * width


def _matrix(
    kept_as: Any, compressed_indices: Any, plain_indices: Any, values: Any, size: Any, dtype: Any, device: Any,
    requires_grad: bool,
) -> Tensor:  # fmt: skip
    _warn(kept_as)
    content = as_values(values, dtype, device)
    places = [as_indices(each, content.device, (int64, int32)) for each in (compressed_indices, plain_indices)]
    refuse_meta(content, *places)
    array = COMPRESSED[kept_as](places[0]._array, places[1]._array, content._array, (0, 0))
    whole = array.compressed.ndim == array.plain.ndim == 1 and array.values.ndim == (3 if array.of_blocks else 1)
    array.shape = tuple(int(each) for each in size) if size is not None else _implied_size(array) if whole else (0, 0)
    check_compressed(array)
    return leaf(_make(places[0], places[1], content, array.shape, kept_as), requires_grad)


def _check_layout(name: str, kept_as: Any, wanted: Any) -> None:
    if kept_as is not None and kept_as is not wanted:
        raise RuntimeError(f"{name}: layout must be {LAYOUT_NAMES[wanted]} but got {kept_as}")


@public(method=False)
@about_sparse
def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """The sparse matrix whose row i has the values from `crow_indices[i]` to `crow_indices[i + 1]`."""
    _check_layout("sparse_csr_tensor", layout, CSR)
    return _matrix(CSR, crow_indices, col_indices, values, size, dtype, device, requires_grad)


@public(method=False)
@about_sparse
def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """The sparse matrix whose column i has the values from `ccol_indices[i]` to `ccol_indices[i + 1]`."""
    _check_layout("sparse_csc_tensor", layout, CSC)
    return _matrix(CSC, ccol_indices, row_indices, values, size, dtype, device, requires_grad)


@public(method=False)
@about_sparse
def sparse_bsr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """The sparse matrix of blocks whose row i has the blocks from `crow_indices[i]` to `crow_indices[i + 1]`."""
    _check_layout("sparse_bsr_tensor", layout, BSR)
    return _matrix(BSR, crow_indices, col_indices, values, size, dtype, device, requires_grad)


@public(method=False)
@about_sparse
def sparse_bsc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """The sparse matrix of blocks whose column i has the blocks from `ccol_indices[i]` to `ccol_indices[i + 1]`."""
    _check_layout("sparse_bsc_tensor", layout, BSC)
    return _matrix(BSC, ccol_indices, row_indices, values, size, dtype, device, requires_grad)


@public(method=False)
@about_sparse
def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A sparse matrix in the layout of rows or columns that `layout` names."""
    if layout is None:
        raise RuntimeError("sparse_compressed_tensor expected sparse compressed tensor layout but got none")
    if layout not in COMPRESSED:
        got = LAYOUT_NAMES.get(layout, layout)
        raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {got}")
    return _matrix(layout, compressed_indices, plain_indices, values, size, dtype, device, requires_grad)


# ----- conversions -------------------------------------------------------------------------------------------------


@public("sparse.spdiags", function=False, method=False)
def spdiags(diagonals: Tensor, offsets: Tensor, shape: tuple[int, int], layout: Any = None) -> Tensor:
    """A sparse matrix with the rows of `diagonals` on its diagonals; element j of a row goes to column j."""
    if diagonals.ndim not in (1, 2):
        raise RuntimeError(f"Diagonals must be vector or matrix, but they have {diagonals.ndim} dimensions")
    if offsets.ndim > 1:
        raise RuntimeError(f"Offsets must be scalar or vector, but they have {offsets.ndim} dimensions")
    rows, places = diagonals.reshape(-1, diagonals.shape[-1]), offsets.reshape(-1)
    if len(shape) != 2:
        raise RuntimeError(f"Output shape must be 2d, not {tuple(shape)}")
    if len(rows) != len(places):
        raise RuntimeError(
            f"Number of diagonals ({len(rows)}) does not match the number of offsets ({len(places)}): one for each row"
        )
    if places.dtype is not int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {LEGACY_NAMES[places.dtype]}")
    steps = places.tolist()
    if len(set(steps)) != len(steps):
        raise RuntimeError(f"Offset tensor contains duplicate values: {steps}")
    layout = COO if layout is None else layout
    if layout not in (COO, CSR, CSC):
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {layout}")
    height, width = shape
    indices, values = [places.new_zeros((2, 0))], [rows.new_zeros(0)]
    for row, step in zip(rows, steps, strict=True):
        first, end = max(step, 0), min(width, rows.shape[1], height + step)
        columns = arange(first, max(first, end), device=places.device)
        indices.append(cat([columns - step, columns]).reshape(2, -1))
        values.append(row[columns])
    made: Tensor = sparse_coo_tensor(cat(indices, 1), cat(values), tuple(shape))
    if layout is COO:
        return made
    return made.to_sparse_csr() if layout is CSR else made.to_sparse_csc()


@public(function=False)
@about_sparse
def to_sparse_csr(input: Tensor, dense_dim: int | None = None) -> Tensor:
    """The matrix as a sparse one by rows."""
    _warn(CSR)
    return to_compressed(input, CSR, None, dense_dim)


@public(function=False)
@about_sparse
def to_sparse_csc(input: Tensor, dense_dim: int | None = None) -> Tensor:
    """The matrix as a sparse one by columns."""
    _warn(CSC)
    return to_compressed(input, CSC, None, dense_dim)


@public(function=False)
@about_sparse
def to_sparse_bsr(input: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """The matrix as a sparse one of blocks, by rows of them."""
    _warn(BSR)
    return to_compressed(input, BSR, blocksize, dense_dim)


@public(function=False)
@about_sparse
def to_sparse_bsc(input: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """The matrix as a sparse one of blocks, by columns of them."""
    _warn(BSC)
    return to_compressed(input, BSC, blocksize, dense_dim)


# ----- looking into them -------------------------------------------------------------------------------------------


def _part(input: Tensor, by_rows: bool, name: str) -> Any:
    cls = COMPRESSED.get(input.layout)
    if cls is not None and cls.by_rows == by_rows:
        return input._array
    what = "row" if by_rows else "column"
    raise RuntimeError(
        f"{name} expected sparse {what} compressed tensor layout but got {layout_name(input)}: the tensor has shape "
        f"{list(input.shape)}"
    )


def _publish_places(name: str, by_rows: bool, part: str, doc: str) -> None:
    """Publish a method that gives the places in groups of rows or columns, and a function that copies them."""

    def places(input: Tensor) -> Tensor:
        return dense_tensor(getattr(_part(input, by_rows, name), part), input)

    def copied(input: Tensor) -> Tensor:
        return places(input).clone()

    for body, published, sentence in (
        (places, name, doc),
        (copied, f"{name}_copy", f"`{name}` in memory of their own."),
    ):
        body.__name__ = body.__qualname__ = published
        body.__doc__ = sentence
    public(function=False)(about_sparse(places))
    public(method=False, out=True)(about_sparse(copied))


_publish_places("crow_indices", True, "compressed", "Where in the values each row begins, and where the last ends.")
_publish_places("col_indices", True, "plain", "The column of each value of a matrix by rows.")
_publish_places("ccol_indices", False, "compressed", "Where in the values each column begins, and where the last ends.")
_publish_places("row_indices", False, "plain", "The row of each value of a matrix by columns.")
