"""Views: other shapes and strides on the same memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided as strided_array

from .._core.storage import owner_of
from .._core.tensor import Tensor
from .dispatch import Array, primitive
from .registry import export_method, public


def wrap_dim(dim: int, ndim: int) -> int:
    """`dim` counted from the front; an IndexError if there is no such dimension. A 0-d tensor has dimensions 0 and -1."""
    size = ndim or 1
    if not -size <= dim < size:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got {dim})")
    return dim % size


def as_shape(sizes: Sequence[Any]) -> tuple[int, ...]:
    """The shape in `*sizes` arguments: `view(2, 3)`, `view((2, 3))` and `view(x.size())` mean the same."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = sizes[0]
    return tuple([each if type(each) is int else each.__index__() for each in sizes])


def infer_size(shape: tuple[int, ...], numel: int) -> tuple[int, ...]:
    """`shape` with its -1, if any, replaced by what is left of `numel`."""
    if -1 not in shape:
        if math.prod(shape) != numel or min(shape, default=0) < 0:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
        return shape
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    known = -math.prod(shape)
    if known == 0:
        raise RuntimeError(
            f"cannot reshape tensor of {numel} elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    if known < 0 or numel % known:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return tuple([numel // known if size == -1 else size for size in shape])


def viewed(array: Any, shape: tuple[int, ...]) -> Any:
    """`array` in another shape without a copy, or None where the strides do not allow it."""
    if array.size == 0:
        return strided_array(array, shape, _contiguous_strides(shape, array.itemsize))
    try:
        return array.reshape(shape, copy=False)
    except ValueError:
        return None


def _contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = []
    step = itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@primitive("ViewBackward0", view=True, self=lambda grad, self_sym_sizes: grad.reshape(self_sym_sizes))
def _view(self: Array, size: tuple[int, ...]) -> Array:
    array = viewed(self, size)
    if array is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            f"contiguous subspaces). Use .reshape(...) instead. (input size {list(self.shape)}, strides "
            f"{[step // self.itemsize for step in self.strides]}, view size {list(size)})"
        )
    return array


@public(function=False)
def view(input: Tensor, *size: Any, dtype: Any = None) -> Tensor:
    """The same elements in another shape, or the same bytes as another dtype; always shares memory."""
    if dtype is not None or (len(size) == 1 and not isinstance(size[0], (int, tuple, list))):
        return input._view_dtype(size[0] if dtype is None else dtype)  # type: ignore[attr-defined,no-any-return]
    return _view(input, infer_size(as_shape(size), input._array.size))  # type: ignore[no-any-return]


@public()
def reshape(input: Tensor, *shape: Any) -> Tensor:
    """The same elements in another shape: a view where the strides allow it, else a copy."""
    size = infer_size(as_shape(shape), input._array.size)
    if viewed(input._array, size) is not None:
        return _view(input, size)  # type: ignore[no-any-return]
    return _unsafe_view(input.clone(memory_format=None), size)  # type: ignore[attr-defined,no-any-return]


@primitive("UnsafeViewBackward0", self=lambda grad, self_sym_sizes: grad.reshape(self_sym_sizes))
def _unsafe_view(self: Array, size: tuple[int, ...]) -> Array:
    return self.reshape(size)


@primitive("TransposeBackward0", view=True, self=lambda grad, dim0, dim1: grad.transpose(dim0, dim1))
def _transpose(self: Array, dim0: int, dim1: int) -> Array:
    return self.swapaxes(dim0, dim1) if self.ndim else self.view()


@public("swapaxes", "swapdims", inplace=False)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """`input` with two dimensions exchanged; shares memory."""
    ndim = input._array.ndim
    return _transpose(input, wrap_dim(dim0, ndim), wrap_dim(dim1, ndim))  # type: ignore[no-any-return]


@primitive("TBackward0", view=True, self=lambda grad: grad.t())
def _t(self: Array) -> Array:
    return self.T if self.ndim > 1 else self.view()


@public()
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; tensors of less than two dimensions as they are."""
    if input._array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D")
    return _t(input)  # type: ignore[no-any-return]


def _expanded_shape(shape: tuple[int, ...], size: tuple[int, ...]) -> tuple[int, ...]:
    added = len(size) - len(shape)
    if added < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(size)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({len(shape)}): {list(shape)} cannot become {list(size)}"
        )
    result = []
    for position, wanted in enumerate(size):
        given = shape[position - added] if position >= added else None
        if wanted == -1:
            if given is None:
                raise RuntimeError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {position}"
                )
            wanted = given
        elif given is not None and given not in (1, wanted):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({given}) at non-singleton dimension "
                f"{position}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}"
            )
        result.append(wanted)
    return tuple(result)


@primitive("ExpandBackward0", view=True, self=lambda grad: grad)  # the engine sums it to the input's shape
def _expand(self: Array, size: tuple[int, ...]) -> Array:
    added = len(size) - self.ndim
    strides = [0] * added + [
        0 if given == 1 and wanted != 1 else step
        for given, wanted, step in zip(self.shape, size[added:], self.strides, strict=True)
    ]
    return strided_array(self, size, strides)


@public(function=False)
def expand(input: Tensor, *size: Any, implicit: bool = False) -> Tensor:
    """A view with dimensions of size 1 stretched; -1 keeps a size."""
    return _expand(input, _expanded_shape(input._array.shape, as_shape(size)))  # type: ignore[no-any-return]


def _as_strided_gradient(grad: Tensor, self_sym_sizes: Any, self_sym_strides: Any, self_offset: int, size: Any, stride: Any, storage_offset: int) -> Tensor:
    """Scatter the gradient of a strided window back to the geometry of its base, in a flat buffer under both."""
    low = min(self_offset, storage_offset)
    extent = max(_extent(self_sym_sizes, self_sym_strides, self_offset), _extent(size, stride, storage_offset)) - low
    places = _positions(size, stride, storage_offset - low)
    flat: Any = grad.new_zeros((extent,))  # type: ignore[attr-defined]
    flat = flat.index_add(0, places, grad.reshape(-1))  # type: ignore[attr-defined]
    sources = _positions(self_sym_sizes, self_sym_strides, self_offset - low)
    counts = np.bincount(sources._array, minlength=extent)
    if (counts > 1).any():  # a base that overlaps itself shares the gradient among the elements that are one
        flat = flat / Tensor._from_parts((np.maximum(counts, 1).astype(flat._array.dtype), grad._kind, [0, None]))
    return flat.index_select(0, sources).reshape(self_sym_sizes)  # type: ignore[no-any-return]


def _extent(size: Sequence[int], stride: Sequence[int], offset: int) -> int:
    if 0 in size:
        return offset
    return offset + 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))


def _positions(size: Sequence[int], stride: Sequence[int], offset: int) -> Tensor:
    from .._core.device import CPU
    from .._core.tensor import wrap

    places = np.full(tuple(size), offset, np.int64)
    for axis, (n, step) in enumerate(zip(size, stride, strict=True)):
        places += (np.arange(n, dtype=np.int64) * step).reshape([-1 if i == axis else 1 for i in range(len(size))])
    return wrap(places.reshape(-1), CPU)


@primitive("AsStridedBackward0", view=True, self=_as_strided_gradient)
def _as_strided(self: Array, size: tuple[int, ...], stride: tuple[int, ...], storage_offset: int) -> Array:
    owner = owner_of(self)
    item = self.itemsize
    start = storage_offset * item
    if start + (_extent(size, stride, 0) * item if 0 not in size else 0) > owner.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {storage_offset}, and itemsize {item} "
            f"requiring a storage size of {start + _extent(size, stride, 0) * item} are out of bounds for storage of size {owner.nbytes}"
        )
    shift = start - (self.ctypes.data - owner.ctypes.data)
    return shifted(self, shift, size, tuple(step * item for step in stride))


def shifted(array: Any, shift: int, size: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """A window that begins `shift` bytes after `array` does; `array` itself only lends its memory."""
    if shift == 0:
        return strided_array(array, size, strides)
    item = array.itemsize
    if shift > 0:
        line = strided_array(array, (shift // item + 1,), (item,))
        return strided_array(line[shift // item :], size, strides)
    line = strided_array(array, (2,), (shift,))
    return strided_array(line[1:], size, strides)


@public(out=False)
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the storage under `input` with any size, strides and offset, in elements."""
    size, stride = as_shape((size,)), as_shape((stride,))
    if len(size) != len(stride):
        raise RuntimeError(f"mismatch in length of strides and shape: sizes {list(size)}, strides {list(stride)}")
    if min(stride, default=0) < 0:
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    offset = input.storage_offset() if storage_offset is None else storage_offset
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    return _as_strided(input, size, stride, offset)  # type: ignore[no-any-return]
