"""Sparse tensors elsewhere: copies, other dtypes and devices, other shapes, single elements."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from ..._core.arrays.sparse import COO, CooArray, coalesced_array, group_numbers, no_elements, rows_of
from ..._core.backend import as_array, read
from ..._core.device import CPU
from ..._core.dtype import NAMES
from ..._core.dtype import dtype as DType
from ..._core.process.defaults import device_for
from ..._core.sparse import SparseTensor, sparse_from_parts, sparse_tensor
from ..._dispatch.dispatch import Array
from ..._dispatch.public.registry import function_named
from ..create.constants import as_dtype
from ..shape.view import wrap_dim
from ..tensor.convert import _targets
from .dispatch import implements, sparse_primitive
from .tensors import as_coo, as_dense, convert_values

# ----- copies and conversions --------------------------------------------------------------------------------------


@sparse_primitive("CloneBackward0", self=lambda grad: grad)
def _clone(self: Array) -> Array:
    return self.copy()


@implements("clone")
def clone(input: Any, *, memory_format: Any = None) -> Any:
    return _clone(input)


@implements("detach")
def detach(input: Any) -> Any:
    # Values are shared; what replaces the places, as most changes in place do, is not seen by the other.
    return sparse_from_parts((copy(input._array), input._kind, input._counter))


@implements("detach_")
def detach_(input: Any) -> Any:
    input._requires_grad = False
    input._grad_fn = None
    input._output_nr = 0
    return input


def _converted(input: Any, element: Any, place: Any, copied: bool = False) -> Any:
    if place is not input.device:
        if input.requires_grad or not isinstance(input, SparseTensor):
            raise NotImplementedError("moving a sparse tensor that requires gradients to another device")
        moved = sparse_tensor(input._array.copy(), place)
        return moved if element is input.dtype else convert_values(moved, element)
    if element is not input.dtype:
        return convert_values(input, element)
    return clone(input) if copied else input


@implements("to")
def to(
    input: Any, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, copy: bool = False,
    memory_format: Any = None,
) -> Any:  # fmt: skip
    named_dtype, named_device, flags = _targets(args)
    dtype = named_dtype if dtype is None else dtype
    device = named_device if device is None else device
    if not isinstance(input, SparseTensor):  # a dense tensor, like a sparse one
        return input.to(dtype=dtype, device=device, copy=copy)
    element = input.dtype if dtype is None else as_dtype(dtype, "to")
    place = input.device if device is None else device_for(device)
    return _converted(input, element, place, copy or (len(flags) == 2 and bool(flags[1])))


@implements("type_as")
def type_as(input: Any, other: Any) -> Any:
    return to(input, other)


@implements("cpu")
def cpu(input: Any, memory_format: Any = None) -> Any:
    return _converted(input, input.dtype, CPU)


def _as_dtype_method(name: str, target: DType) -> None:
    def run(input: Any, *, memory_format: Any = None) -> Any:
        return _converted(input, target, input.device)

    implements(name)(run)


for _name in ("float", "double", "half", "bfloat16", "int", "long", "short", "cfloat", "cdouble"):
    _as_dtype_method(_name, NAMES[_name])
for _name, _dtype in (("char", "int8"), ("byte", "uint8"), ("bool", "bool")):
    _as_dtype_method(_name, NAMES[_dtype])


@implements("numpy", "__array__")
def numpy(input: Any, *args: Any, **kwargs: Any) -> Any:
    raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")


@implements("is_contiguous")
def is_contiguous(input: Any, memory_format: Any = None) -> bool:
    return False


@implements("zeros_like", "empty_like")
def zeros_like(
    input: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False, memory_format: Any = None,
) -> Any:  # fmt: skip
    element = input.dtype if dtype is None else as_dtype(dtype, "zeros_like")
    place = input.device if device is None else device_for(device)
    if layout is not None and layout is not input.layout:
        made = function_named("", "zeros")(tuple(input.shape), dtype=element, device=place, layout=layout)
    elif input.layout is not COO:
        array = input._array
        starts = np.zeros_like(array.compressed)
        values = np.zeros((0, *array.values.shape[1:]), element.numpy)
        made = sparse_tensor(type(array)(starts, np.zeros(0, starts.dtype), values, array.shape), place)
    else:
        made = sparse_tensor(no_elements(input._array, element.numpy), place)
    return made.requires_grad_(bool(requires_grad))


# ----- shapes ------------------------------------------------------------------------------------------------------


@sparse_primitive("TransposeBackward0", self=lambda grad, dim0, dim1: grad.transpose(dim0, dim1))
def _transposed(self: Array, dim0: int, dim1: int) -> Array:
    array = as_coo(self)
    shape = list(array.shape)
    shape[dim0], shape[dim1] = shape[dim1], shape[dim0]
    sparse = array.sparse_dim
    if dim0 >= sparse and dim1 >= sparse:
        values = np.swapaxes(array.values, dim0 - sparse + 1, dim1 - sparse + 1)
        return CooArray(array.indices, values, tuple(shape), array.coalesced)
    if dim0 >= sparse or dim1 >= sparse:
        raise RuntimeError("transpose of a sparse and a dense dimension of a sparse tensor is not supported")
    order = list(range(sparse))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return CooArray(rows_of(array.indices, order), array.values, tuple(shape), dim0 == dim1 and array.coalesced)


@sparse_primitive("TransposeBackward0", self=lambda grad: grad.transpose(0, 1))
def _turned(self: Array) -> Array:
    """The transpose of a matrix by rows, by columns, and the other way round."""
    return self.transposed()


def transposed(input: Any) -> Any:
    """The transpose of a matrix; that of a sparse one by coordinates."""
    return _transposed(input, 0, 1) if isinstance(input, SparseTensor) else input.transpose(0, 1)


@implements("transpose", "swapaxes", "swapdims")
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    ndim = input._array.ndim
    dim0, dim1 = wrap_dim(dim0, ndim), wrap_dim(dim1, ndim)
    if input.layout is COO:
        return _transposed(input, dim0, dim1)
    return input if dim0 == dim1 else _turned(input)


@implements("t")
def t(input: Any) -> Any:
    if input._array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D")
    return input if input._array.ndim < 2 else transpose(input, 0, 1)


def _selected_gradient(grad: Any, self: Any, dim: int, index: int) -> Any:
    dense = as_dense(grad)
    return dense.new_zeros(tuple(self.shape)).select_scatter(dense, dim, index)


@sparse_primitive("SelectBackward0", self=_selected_gradient)
def _selected(self: Array, dim: int, index: int) -> Array:
    shape = self.shape[:dim] + self.shape[dim + 1 :]
    if dim >= self.sparse_dim:
        values = np.take(self.values, index, axis=dim - self.sparse_dim + 1)
        return CooArray(self.indices, values, shape, self.coalesced)
    kept = self.indices[dim] == index
    places = np.flatnonzero(kept)
    others = rows_of(self.indices, [each for each in range(self.sparse_dim) if each != dim])
    array = CooArray(np.take(others, places, axis=1), self.values[places], shape, self.coalesced)
    if array.sparse_dim:
        return array
    values = array.values.sum(axis=0, dtype=array.dtype)
    return as_array(values)


@implements("select")
def select(input: Any, dim: int, index: int) -> Any:
    if input.layout is not COO:
        input = input.to_sparse_coo().coalesce()
    array = input._array
    if not array.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, array.ndim)
    size = array.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(array.shape)} at dimension {dim}"
        )
    return _selected(input, dim, index % size)


def _chosen_gradient(grad: Any, self: Any, dim: int, index: Any) -> Any:
    dense = as_dense(grad)
    return dense.new_zeros(tuple(self.shape)).index_add(dim, index, dense)


@sparse_primitive("IndexSelectBackward0", self=_chosen_gradient)
def _index_selected(self: Array, dim: int, index: Array) -> Array:
    """For each of the positions `index` the elements that are there along `dim`."""
    array = coalesced_array(self)
    shape = (*array.shape[:dim], index.shape[0], *array.shape[dim + 1 :])
    if dim >= array.sparse_dim:
        values = np.take(array.values, index, axis=dim - array.sparse_dim + 1)
        return CooArray(array.indices, values, shape, True)
    order = np.argsort(array.indices[dim], kind="stable")
    ordered = array.indices[dim][order]
    first: Any = np.searchsorted(ordered, index)
    counts: Any = np.searchsorted(ordered, index, side="right") - first
    begins = np.concatenate((np.zeros(1, np.int64, like=counts), np.cumsum(counts)))
    total = int(read(begins[-1]))
    wanted = group_numbers(begins, total)
    places = order[np.arange(total, like=wanted) - begins[wanted] + first[wanted]]
    rows = [wanted if each == dim else array.indices[each][places] for each in range(array.sparse_dim)]
    return CooArray(np.stack(rows).astype(np.int64, copy=False), array.values[places], shape)


@implements("index_select")
def index_select(input: Any, dim: int, index: Any) -> Any:
    if input.layout is not COO:
        raise NotImplementedError(
            f"index_select of a tensor of layout {input.layout}. Convert it with .to_sparse_coo()"
        )
    array = input._array
    dim = wrap_dim(dim, array.ndim)
    if index.dim() != 1:
        raise IndexError(f"index_select(): Index is supposed to be a vector, but it has shape {list(index.shape)}")
    size = array.shape[dim]
    wrong = ((index < 0) | (index >= size)).any()
    if wrong.item():
        raise IndexError(
            f"index_select(): index out of range for tensor of size {list(array.shape)} at dimension {dim}"
        )
    return _index_selected(input, dim, index)


@implements("__getitem__")
def getitem(input: Any, index: Any) -> Any:
    chosen = index if isinstance(index, tuple) else (index,)
    if not all(type(each) is int for each in chosen):
        raise NotImplementedError(
            "indexing of a sparse tensor by anything but whole numbers is not implemented. Convert it with .to_dense()"
        )
    result = input
    for each in chosen:
        result = result[each] if not isinstance(result, SparseTensor) else select(result, 0, each)
    return result
