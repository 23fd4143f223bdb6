"""Sparse tensors: making them, converting them, and looking into them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.arrays.narrow import as_type
from ..._core.arrays.sparse import (
    BSC,
    BSR,
    COMPRESSED,
    COO,
    CSC,
    CSR,
    CompressedArray,
    CooArray,
    SparseArray,
    coalesced_array,
    compressed_from_coo,
    coo_from_dense,
    to_dense_array,
    values_at,
)
from ..._core.backend import to_host
from ..._core.device import layout
from ..._core.dtype import COMPLEX, get_default_dtype, int64
from ..._core.dtype import dtype as DType
from ..._core.process.defaults import device_for
from ..._core.sparse import LAYOUT_NAMES, SparseTensor, dense_tensor, sparse_tensor
from ..._core.tensor import Tensor
from ..._dispatch.changes.history import end_change
from ..._dispatch.dispatch import Array
from ..._dispatch.gradients.undifferentiable import refuse_complex_gradients
from ..._dispatch.public.registry import public
from ..create.constants import as_dtype, tensor
from ..create.from_python import as_tensor
from .checks import check_coordinates, is_sorted
from .dispatch import about_sparse, sparse_primitive


def layout_name(value: Any) -> str:
    """What PyTorch's messages call the layout of a tensor."""
    return LAYOUT_NAMES[value.layout]


def _expect(value: Tensor, wanted: layout | None, name: str) -> Any:
    if value.layout is wanted or (wanted is None and isinstance(value, SparseTensor)):
        return value._array
    words = "tensor" if wanted is None else "coordinate tensor"
    raise RuntimeError(
        f"{name} expected sparse {words} layout but got {layout_name(value)}: the tensor has shape {list(value.shape)}"
    )


# ----- differentiable conversions ----------------------------------------------------------------------------------


def as_dense(value: Any) -> Tensor:
    """A sparse tensor as a dense one; a dense one as it is."""
    return value.to_dense() if isinstance(value, SparseTensor) else value


def as_coo(array: Any) -> CooArray:
    """A sparse array by coordinates."""
    found: CooArray = array.by_coordinates()
    return found


def _mask_gradient(grad: Tensor, mask: Tensor, dense: bool) -> Tensor:
    masked = sparse_mask(grad, mask)
    return as_dense(masked) if dense else masked


@sparse_primitive("SparseMaskBackward0", self=_mask_gradient)
def _masked(self: Array, mask: Array, dense: bool) -> Array:
    """The elements of `self`, which is `dense` or not, at the places of `mask`."""
    if isinstance(mask, CompressedArray):
        places = mask.by_coordinates(coalesced=False)  # in the order of the values
        return mask.with_values(values_at(self, places).reshape(mask.values.shape))
    mask = coalesced_array(mask)
    return CooArray(mask.indices, values_at(self, mask), mask.shape, True)


def _scatter_values(grad: Tensor, indices: Any, self_sym_sizes: Any) -> Any:
    return make_coo(indices, grad, self_sym_sizes, False)


@sparse_primitive("IndexBackward0", self=_scatter_values)
def _take_values(self: Array, indices: Array, shape: Any) -> Array:
    """The elements of a dense or sparse tensor at coordinates."""
    return values_at(self, CooArray(indices, np.empty((indices.shape[1], 0)), tuple(shape)))


@sparse_primitive(
    "SparseCooTensorWithDimsAndTensorsBackward0", values=lambda grad, indices, size: _take_values(grad, indices, size)
)
def make_coo(indices: Array, values: Array, size: Any, coalesced: bool) -> Array:
    """The sparse tensor with `values` at `indices`, which are in range."""
    return CooArray(indices, values, tuple(size), coalesced)


def _values_gradient(grad: Tensor, self: Tensor) -> Any:
    return _with_values(self, grad)


def _dense_gradient(grad: Tensor, self: Tensor, masked: bool) -> Any:
    if masked or isinstance(grad, SparseTensor):
        return sparse_mask(grad, self) if masked else grad
    if self.layout is COO:
        return _to_coo(grad, self._array.sparse_dim)
    return compress(grad, self.layout, self._array.blocksize)


@sparse_primitive("ValuesBackward0", self=_values_gradient)
def _values_of(self: Array) -> Array:
    return self.values


@sparse_primitive("ValuesBackward0", values=lambda grad, self: values_like(grad, self))
def _with_values(self: Array, values: Array) -> Array:
    """`values` at the places of `self`, of which only those matter."""
    return self.with_values(values)


def values_like(grad: Tensor, places: Tensor) -> Any:
    """The elements of a gradient at the places of a sparse tensor, one for each value that this has."""
    array = places._array.by_coordinates(coalesced=False)
    return _take_values(grad, dense_tensor(array.indices, places), array.shape).reshape(places._array.values.shape)


@sparse_primitive("CoalesceBackward0", self=lambda grad: grad)
def _coalesce(self: Array) -> Array:
    return coalesced_array(self)


@sparse_primitive("ToDenseBackward0", self=_dense_gradient)
def _to_dense(self: Array, masked: bool) -> Array:
    return to_dense_array(self)


@sparse_primitive("ToSparseBackward0", self=lambda grad: as_dense(grad))
def _to_coo(self: Array, sparse_dim: int) -> Array:
    return coo_from_dense(self, sparse_dim)


@sparse_primitive("ToSparseBackward1", self=lambda grad: as_dense(grad))
def _to_coo_wholly(self: Array) -> Array:
    return coo_from_dense(self, self.ndim)


@sparse_primitive("ToSparseBackward1", self=lambda grad: grad)
def _compressed_to_coo(self: Array) -> Array:
    return self.by_coordinates(coalesced=self.layout is CSR)  # elsewhere PyTorch leaves the sorting to `coalesce`


def _compressed(matrix: Any, kept_as: layout, blocksize: tuple[int, int]) -> CompressedArray:
    array = matrix.by_coordinates() if isinstance(matrix, SparseArray) else coo_from_dense(matrix, 2)
    return compressed_from_coo(array, kept_as, blocksize)


def _compressed_gradient(grad: Tensor, was_dense: bool) -> Tensor:
    return as_dense(grad) if was_dense else grad


@sparse_primitive("ToSparseCsrBackward0", self=_compressed_gradient)
def _to_csr(self: Array, was_dense: bool, blocksize: Any) -> Array:
    return _compressed(self, CSR, blocksize)


@sparse_primitive("ToSparseCscBackward0", self=_compressed_gradient)
def _to_csc(self: Array, was_dense: bool, blocksize: Any) -> Array:
    return _compressed(self, CSC, blocksize)


@sparse_primitive("ToSparseBsrBackward0", self=_compressed_gradient)
def _to_bsr(self: Array, was_dense: bool, blocksize: Any) -> Array:
    return _compressed(self, BSR, blocksize)


@sparse_primitive("ToSparseBscBackward0", self=_compressed_gradient)
def _to_bsc(self: Array, was_dense: bool, blocksize: Any) -> Array:
    return _compressed(self, BSC, blocksize)


@sparse_primitive("ToSparseBackward1", self=_compressed_gradient)
def _to_layout(self: Array, was_dense: bool, blocksize: Any, kept_as: Any) -> Array:
    return _compressed(self, kept_as, blocksize)


_COMPRESSING: dict[layout, Any] = {CSR: _to_csr, CSC: _to_csc, BSR: _to_bsr, BSC: _to_bsc}


def compress(input: Tensor, kept_as: layout, blocksize: tuple[int, int] = (1, 1)) -> Any:
    """A matrix, dense or sparse, in a layout of rows or columns."""
    return _COMPRESSING[kept_as](input, not isinstance(input, SparseTensor), blocksize)


@sparse_primitive("ToCopyBackward0", self=lambda grad: grad)
def convert_values(self: Array, dtype: DType) -> Array:
    """The sparse tensor with its values converted to `dtype`."""
    return self.with_values(as_type(self.values, dtype.numpy))


# ----- making them -------------------------------------------------------------------------------------------------


def as_indices(value: Any, place: Any, kept: tuple[DType, ...] = (int64,)) -> Tensor:
    indices = value if isinstance(value, Tensor) else tensor(value, device=place)
    if indices.numel() == 0 and not isinstance(value, Tensor):
        indices = indices.to(int64)
    if indices.dtype.category >= COMPLEX or indices.is_sparse:
        raise TypeError(f"indices must be integers, not {indices.dtype} of layout {indices.layout}")
    return (indices if indices.dtype in kept else indices.to(int64)).resolve_neg()


def as_values(value: Any, dtype: Any, place: Any) -> Tensor:
    wanted = None if dtype is None else as_dtype(dtype, "sparse tensors")
    return as_tensor(value, dtype=wanted, device=place).resolve_conj().resolve_neg()


def leaf(made: Tensor, requires_grad: bool) -> Tensor:
    return made.detach().requires_grad_() if requires_grad else made


def refuse_meta(*tensors: Any) -> None:
    if any(each._kind.dataless for each in tensors):
        raise NotImplementedError("sparse tensors on the meta device: their number of elements depends on data")


@public(method=False)
@about_sparse
def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:  # fmt: skip
    """The sparse tensor that has `values` at the coordinates in the columns of `indices`.

    Without `size` it is just large enough. Equal coordinates are allowed: their values add up.
    """
    if values is None:
        return leaf(_empty_coo(size if indices is None else indices, dtype, device), requires_grad)
    content = as_values(values, dtype, device)
    places = as_indices(indices, content.device)
    if size is not None and not (isinstance(size, (tuple, list)) and all(hasattr(each, "__index__") for each in size)):
        raise TypeError(
            "sparse_coo_tensor() received an invalid combination of arguments: size must be tuple of ints, not "
            f"{type(size).__name__}"
        )
    refuse_meta(content, places)
    where = places._array
    if not where.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions: indices must be sparse_dim x nnz")
    if where.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(where.shape)}")
    if content.ndim == 0 and where.shape[1] == 1:
        content = content.reshape(1)
    if content.ndim == 0 or content.shape[0] != where.shape[1]:
        count = content.shape[0] if content.ndim else 1
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {where.shape[1]}, nnz from values: "
            f"{count}"
        )
    sparse, dense = where.shape[0], content.ndim - 1
    if size is None:
        if where.shape[1] == 0 and sparse:
            shape = (*([0] * sparse), *content.shape[1:])
        else:
            shape = (*((to_host(where.max(axis=1)) + 1).tolist() if sparse else ()), *content.shape[1:])
    else:
        shape = tuple(int(each) for each in size)
    if len(shape) != sparse + dense:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(shape)}, sparse_dim = {sparse}, "
            f"dense_dim = {dense}"
        )
    check_coordinates(where, content._array, shape)
    if is_coalesced and not is_sorted(CooArray(where, content._array, shape)):
        raise RuntimeError("is_coalesced=True, but the indices are not sorted, each there once: elements would be lost")
    made = make_coo(places, content, shape, bool(is_coalesced))
    return leaf(made, requires_grad)


def _empty_coo(size: Any, dtype: Any, place: Any) -> Tensor:
    if size is None:
        raise TypeError("sparse_coo_tensor() needs indices and values, or a size")
    shape = tuple(int(each) for each in size)
    element = get_default_dtype() if dtype is None else as_dtype(dtype, "sparse_coo_tensor")
    array = CooArray(np.zeros((len(shape), 0), np.int64), np.zeros(0, element.numpy), shape, True)
    return sparse_tensor(array, device_for(place))


# ----- conversions -------------------------------------------------------------------------------------------------


@public(function=False)
@about_sparse
def to_sparse(
    input: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: Any = None
) -> Tensor:
    """The tensor in a sparse layout: by coordinates, unless `layout` names another.

    With `sparse_dim`, only so many leading dimensions are sparse, and the values are dense slices.
    """
    if layout not in (None, COO):
        return to_compressed(input, layout, blocksize, dense_dim, by_name=False)
    if blocksize is not None or dense_dim is not None:
        raise RuntimeError(f"to_sparse: {input.layout} to sparse_coo conversion takes no blocksize and no dense_dim")
    refuse_meta(input)
    if isinstance(input, SparseTensor):
        if input.layout is not COO:
            return _compressed_to_coo(input)
        if sparse_dim not in (None, input._array.sparse_dim):
            raise RuntimeError(
                f"to_sparse: conversion from Sparse to Sparse with sparse_dim={sparse_dim} is not supported: it has "
                f"{input._array.sparse_dim}"
            )
        return input
    refuse_complex_gradients("_to_sparse", input)
    if sparse_dim is None:
        return _to_coo_wholly(input)
    ndim = input._array.ndim
    if (ndim == 0 and sparse_dim != 0) or (ndim and not 0 < sparse_dim <= ndim):
        raise RuntimeError(f"sparse_dim argument must be in >0 and <= {ndim}, but got {sparse_dim}")
    return _to_coo(input, sparse_dim)


def to_compressed(
    input: Tensor, kept_as: Any, blocksize: Any = None, dense_dim: int | None = None, by_name: bool = True
) -> Tensor:
    """A matrix, dense or sparse, in one of the layouts of rows or columns; `by_name`: asked for by its own method."""
    name = f"to_sparse_{str(kept_as).rpartition('_')[2]}"
    if kept_as not in COMPRESSED:
        raise RuntimeError(f"to_sparse: conversion from {layout_name(input)} to {kept_as} is not supported")
    refuse_meta(input)
    if dense_dim:
        raise NotImplementedError(f"{name}(): dense dimensions of compressed tensors are not implemented")
    if COMPRESSED[kept_as].of_blocks != (blocksize is not None):
        raise RuntimeError(f"{name}: blocksize is {blocksize}: blocks have one, single elements have none")
    blocks = (1, 1) if blocksize is None else (int(blocksize[0]), int(blocksize[1]))
    if input.layout is kept_as and (blocksize is None or input._array.blocksize == blocks):
        return input
    if input._array.ndim < 2:
        raise RuntimeError(f"{name}: expected a tensor of at least 2 dimensions, but it has shape {list(input.shape)}")
    if input._array.ndim > 2 or (input.layout is COO and input._array.sparse_dim != 2):
        raise NotImplementedError(f"{name}(): batches of matrices are not implemented")
    if input.layout in COMPRESSED and input._array.of_blocks and blocksize is None:
        raise RuntimeError(
            f"sparse_compressed_{name}: expected SparseCsr or SparseCsc layout but got {layout_name(input)}: "
            "convert it by way of .to_sparse_coo()"
        )
    if any(length % block for length, block in zip(input.shape, blocks, strict=True)):
        raise RuntimeError(
            f"{name}: tensor sparse size {tuple(input.shape)} must be divisible by given blocksize {blocks}"
        )
    if by_name:
        named: Tensor = compress(input, kept_as, blocks)
        return named
    return _to_layout(input, not isinstance(input, SparseTensor), blocks, kept_as)


@public(function=False)
@about_sparse
def to_sparse_coo(input: Tensor) -> Tensor:
    """The tensor as a sparse one by coordinates."""
    return to_sparse(input)


@public(function=False)
@about_sparse
def to_dense(input: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor in the strided layout, with all its zeros.

    The gradient of a sparse tensor has its places only, unless `masked_grad` is False.
    """
    made = _to_dense(input, masked_grad is not False) if isinstance(input, SparseTensor) else input
    return made if dtype is None else made.to(as_dtype(dtype, "to_dense"))


@public(function=False)
@about_sparse
def sparse_mask(input: Tensor, mask: Tensor) -> Tensor:
    """The elements of a tensor at the places of the sparse tensor `mask`."""
    if not isinstance(mask, SparseTensor):
        raise RuntimeError(f"sparse_mask expected sparse tensor layout for mask but got {layout_name(mask)}")
    if input.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(input.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    return _masked(input, mask, not isinstance(input, SparseTensor))


@public(function=False)
@about_sparse
def coalesce(input: Tensor) -> Tensor:
    """The tensor with sorted coordinates, each there once; itself if it is that already."""
    return input if _expect(input, COO, "coalesce").coalesced else _coalesce(input)


# ----- looking into them -------------------------------------------------------------------------------------------


@public(function=False)
@about_sparse
def is_coalesced(input: Tensor) -> bool:
    """Whether the coordinates are known to be sorted, each there once."""
    return bool(_expect(input, COO, "is_coalesced").coalesced)


def _coalesced_parts(input: Tensor, name: str) -> CooArray:
    array: CooArray = _expect(input, COO, name)
    if not array.coalesced:
        raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")
    return array


@public(function=False)
@about_sparse
def indices(input: Tensor) -> Tensor:
    """The coordinates of the elements of a coalesced tensor, one in each column."""
    return dense_tensor(_coalesced_parts(input, "indices").indices, input)


@public(function=False)
@about_sparse
def values(input: Tensor) -> Tensor:
    """The elements of a coalesced tensor; they share its memory."""
    if not isinstance(input, SparseTensor) or input.layout is COO:
        _expect(input, None, "values")
        _coalesced_parts(input, "values")
    return _shared_values(input)


def _shared_values(input: Tensor) -> Tensor:
    made = _values_of(input)
    if input._counter is not None:
        made._counter = input._counter
    return made


def _only_sparse(input: Tensor, name: str) -> SparseTensor:
    if not isinstance(input, SparseTensor):
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: it is for sparse tensors"
        )
    return input


@public(function=False)
@about_sparse
def _indices(input: Tensor) -> Tensor:
    """The coordinates as they are, coalesced or not."""
    _only_sparse(input, "_indices")
    return dense_tensor(_expect(input, COO, "_indices").indices, input)


@public(function=False)
@about_sparse
def _values(input: Tensor) -> Tensor:
    """The values as they are, coalesced or not, outside the graph; they share the tensor's memory."""
    array = _only_sparse(input, "_values")._array
    return dense_tensor(array.values, input, input._counter)


@public(function=False)
@about_sparse
def _nnz(input: Tensor) -> int:
    """How many elements are named."""
    return int(_only_sparse(input, "_nnz")._array.nnz)


@public(function=False)
@about_sparse
def sparse_dim(input: Tensor) -> int:
    """How many dimensions are sparse."""
    array = input._array
    if not isinstance(array, SparseArray):
        return 0
    return array.sparse_dim if isinstance(array, CooArray) else 2


@public(function=False)
@about_sparse
def dense_dim(input: Tensor) -> int:
    """How many dimensions are dense."""
    return int(input._array.ndim) - sparse_dim(input)


@public(function=False)
@about_sparse
def _coalesced_(input: Tensor, coalesced: bool) -> Tensor:
    """Say whether the tensor is coalesced."""
    _expect(input, COO, "_coalesced_").coalesced = bool(coalesced)
    return input


def _resized(input: Tensor, size: Any, sparse: int, dense: int, name: str, clear: bool) -> Tensor:
    array: CooArray = _expect(input, COO, name)
    shape = tuple(int(each) for each in size)
    if sparse + dense != len(shape):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(shape)}, sparse_dim = {sparse}, "
            f"dense_dim = {dense}"
        )
    if clear or not array.nnz:
        places = np.zeros((sparse, 0), np.int64, like=array.values)
        kept = CooArray(places, np.zeros((0, *shape[sparse:]), array.dtype, like=array.values), shape, True)
    else:
        if sparse != array.sparse_dim or any(new < old for new, old in zip(shape, array.shape, strict=True)):
            raise RuntimeError(
                f"{name}: a tensor with elements can neither shrink nor change its number of sparse dimensions, from "
                f"{list(array.shape)} to {list(shape)}; sparse_resize_and_clear_ forgets the elements"
            )
        values = np.zeros((array.nnz, *shape[sparse:]), array.dtype, like=array.values)
        values[tuple(slice(each) for each in array.values.shape)] = array.values
        kept = CooArray(array.indices, values, shape, array.coalesced)
    if input.requires_grad:
        raise RuntimeError(f"{name}: cannot resize variables that require grad")
    array.take(kept)
    end_change(input)
    return input


@public(function=False)
@about_sparse
def sparse_resize_(input: Tensor, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    """Make the tensor larger in place; the new elements are zero."""
    return _resized(input, size, sparse_dim, dense_dim, "sparse_resize_", clear=False)


@public(function=False)
@about_sparse
def sparse_resize_and_clear_(input: Tensor, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    """Give the tensor another shape in place, and forget its elements."""
    return _resized(input, size, sparse_dim, dense_dim, "sparse_resize_and_clear_", clear=True)


@public()
@about_sparse
def resize_as_sparse_(input: Tensor, the_template: Tensor) -> Tensor:
    """Make the tensor as large in place as another one, with as many sparse dimensions; the new elements are zero."""
    return sparse_resize_(input, the_template.shape, sparse_dim(the_template), dense_dim(the_template))
