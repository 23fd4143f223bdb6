"""Elements in other places: flip, roll, repeat, triangles and diagonals, and parts replaced."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.backend import LARGE, as_array, backend_of_array, to_host
from ..._core.dtype import BOOL, FLOAT, INTEGER, LEGACY_NAMES, int32, int64
from ..._core.geometry.layout import element_strides, empty_array, empty_like, is_channels_last, is_plain, strides_like
from ..._core.geometry.strided_windows import overlaps, positions, window
from ..._core.size import fits_int64
from ..._core.storage import address_of, owner_of
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL, on
from ..._dispatch.arguments.promotion import Number
from ..._dispatch.axes import MATRICES, Along
from ..._dispatch.composite import composite
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.factory import constant_beside
from ..._dispatch.public.registry import public
from .parts import _diagonal_backward, _diagonal_of, _slice, diagonal_dims, selected_index, slice_bounds
from .strided import _restride, own_and_part, strided_arguments
from .view import _ALL, _contiguous_clone, _expand, _unsqueeze, as_ints, as_shape, distinct_dims, reshaped, wrap_dim

# ----- repetition ---------------------------------------------------------------------------------------------------


def _repeat_gradient(grad: Tensor, self_sym_sizes: tuple[int, ...], repeats: tuple[int, ...]) -> Tensor:
    if not repeats:
        return grad
    if 0 in repeats:
        return grad.new_zeros(self_sym_sizes)
    shape = (1,) * (len(repeats) - len(self_sym_sizes)) + self_sym_sizes
    pairs = [size for pair in zip(repeats, shape, strict=True) for size in pair]
    repeated = tuple([place for place in range(0, len(pairs), 2) if pairs[place] > 1])
    summed = grad.reshape(pairs).sum(repeated) if repeated else grad
    return summed.reshape(self_sym_sizes)


@primitive("RepeatBackward0", self=_repeat_gradient)
def _repeat(self: Array, repeats: tuple[int, ...]) -> Array:
    shape = (1,) * (len(repeats) - self.ndim) + self.shape
    result = np.empty([count * size for count, size in zip(repeats, shape, strict=True)], self.dtype, like=self)
    pairs = [size for pair in zip(repeats, shape, strict=True) for size in pair]
    _fill(result.reshape(pairs), self.reshape([size for each in shape for size in (1, each)]))
    return result


def _fill(target: Any, source: Any) -> None:
    """Write the elements of `source`, broadcast, into new memory."""
    if target.size < LARGE or not arrays.store(target, source):
        target[...] = source


@public(function=False)
def repeat(input: Tensor, repeats: Any, *more: int) -> Tensor:
    """Copies of `input` side by side, so many along each dimension; `repeats` may name new leading dimensions."""
    counts = as_shape((repeats, *more))
    shape = input._array.shape
    if len(counts) < len(shape):
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: "
            f"repeats {list(counts)}, shape {list(shape)}"
        )
    if min(counts, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension: repeats {list(counts)}")
    return _repeat(input, counts)


@public()
def tile(input: Tensor, dims: Any, *more: int) -> Tensor:
    """Copies of `input` side by side; `dims` that are missing in front count as 1."""
    counts = as_shape((dims, *more))
    return input.repeat((1,) * (input._array.ndim - len(counts)) + counts)


@public()
def repeat_interleave(
    input: Tensor | None = None, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element of `input` (or each part along `dim`) so many times in a row.

    With `input` alone, its values are the counts, and the result says which element comes where.
    """
    if input is None:
        input, repeats = repeats, None
        if not isinstance(input, Tensor):
            raise TypeError('repeat_interleave() missing 1 required positional arguments: "input"')
    if repeats is None:
        return _interleaved(input, output_size)
    if dim is None:
        input, dim = reshaped(input, (input._array.size,)), 0
    dim = wrap_dim(dim, input._array.ndim)
    if input._array.ndim == 0:
        input = reshaped(input, (1,))
    if not isinstance(repeats, Tensor):
        if isinstance(repeats, (tuple, list)):
            repeats = constant_beside(np.asarray(repeats, np.int64), input)
        else:
            return _interleave_evenly(input, repeats, dim, output_size)
    if repeats._array.ndim > 1:
        raise RuntimeError(f"repeats must be 0-dim or 1-dim tensor, got shape {list(repeats._array.shape)}")
    size = input._array.shape[dim]
    if repeats._array.size == 1:
        repeats = repeats.reshape(1).expand(size)
    elif repeats._array.size != size:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats._array.size} and "
            f"input.size({dim}) = {size}"
        )
    return input.index_select(dim, _interleaved(repeats, output_size))


def _interleaved(repeats: Tensor, output_size: int | None) -> Tensor:
    if repeats.dtype not in (int32, int64):
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{LEGACY_NAMES[repeats.dtype]}'")
    if repeats._array.ndim != 1:
        raise RuntimeError(f"repeat_interleave only accept 1D vector as repeat, got shape {list(repeats.shape)}")
    return _repeat_interleave(repeats, output_size)


def _shape_of_places(repeats: Any, output_size: int | None) -> Any:
    if output_size is None:
        raise RuntimeError("cannot repeat_interleave a meta tensor without output_size: the counts are unknown")
    return np.empty_like(repeats, shape=(output_size,))


@primitive(None, shape=_shape_of_places)
def _repeat_interleave(repeats: Array, output_size: int | None) -> Array:
    counts = repeats
    least, total = (int(to_host(as_array(each))) for each in (counts.min(initial=0), counts.sum()))
    if least < 0:
        raise RuntimeError(f"repeats can not be negative, got {least}")
    if output_size is not None and total != output_size:
        raise RuntimeError(f"allocated size does not match required size: output_size={output_size}, needed {total}")
    if type(counts) is np.ndarray:
        # NumPy counts in numbers as wide as an address, 32 bits in the browser.
        return np.repeat(np.arange(len(counts), dtype=counts.dtype), counts.astype(np.intp, copy=False))
    ends = np.cumsum(counts)
    places = np.searchsorted(ends, np.arange(total, dtype=ends.dtype, like=counts), "right")
    return as_array(places).astype(counts.dtype, copy=False)


def _interleave_evenly(input: Tensor, repeats: int, dim: int, output_size: int | None) -> Tensor:
    if repeats < 0:
        raise RuntimeError(f"Repeats must be non-negative, got {repeats}")
    shape = input._array.shape
    if output_size is not None and output_size != shape[dim] * repeats:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {shape[dim] * repeats} but got {output_size}"
        )
    return _each_repeated(input, repeats if type(repeats) is int else as_shape((repeats,))[0], dim)


def _repeated_on_arrays(array: Array, count: int, dim: int) -> Array | None:
    if type(array) is not np.ndarray:
        return None
    if array.size * count < LARGE:
        return array.repeat(count, dim)
    before, size, after = array.shape[:dim], array.shape[dim], array.shape[dim + 1 :]
    spread = np.empty((*before, size, count, *after), array.dtype)
    each = array[(*_ALL[dim + 1], None)]
    return spread.reshape(*before, size * count, *after) if arrays.store(spread, each) else array.repeat(count, dim)


@composite("each_repeated", kernel=_repeated_on_arrays)
def _each_repeated(input: Tensor, count: int, dim: int) -> Tensor:
    """Each part of `input` along `dim` `count` times in a row."""
    shape = input._array.shape
    before, size, after = shape[:dim], shape[dim], shape[dim + 1 :]
    spread = _expand(_unsqueeze(input, dim + 1), (*before, size, count, *after))
    return reshaped(_contiguous_clone(spread), (*before, size * count, *after))


# ----- reordering ---------------------------------------------------------------------------------------------------


def _roll_gradient(grad: Tensor, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Tensor:
    return _roll(grad, tuple([-shift for shift in shifts]), dims)


@primitive("RollBackward0", self=_roll_gradient)
def _roll(self: Array, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Array:
    if not dims:
        return _rolled(self.reshape(-1), {0: shifts[0]}).reshape(self.shape)
    moved: dict[int, int] = {}
    keeps_order = is_channels_last(self)
    for shift, dim in zip(shifts, dims, strict=True):
        moved[dim] = moved.get(dim, 0) + shift
        keeps_order = keeps_order and shift % self.shape[dim] != 0  # what does not move PyTorch copies row by row
    return _rolled(self, moved, keeps_order)


def _rolled(array: Any, moved: dict[int, int], keeps_order: bool = False) -> Any:
    """A copy whose elements were moved by so many places along each dimension: each corner of it is one copy."""
    shape, dtype = array.shape, array.dtype
    result = empty_like(array, None, dtype) if keeps_order else np.empty(shape, dtype, like=array)
    corners: list[tuple[tuple[slice, ...], tuple[slice, ...]]] = [((), ())]
    for dim, size in enumerate(array.shape):
        first = moved.get(dim, 0) % size if size else 0
        parts = [(slice(first, None), slice(size - first)), (slice(first), slice(size - first, None))]
        if not first:
            parts = [(slice(None), slice(None))]
        corners = [((*to, *part[:1]), (*from_, *part[1:])) for to, from_ in corners for part in parts]
    for to, from_ in corners:
        _fill(result[to], array[from_])
    return result


@public()
def roll(input: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    """Elements moved along `dims`, or in the flat tensor; those that leave at the end enter at the beginning."""
    steps, axes = as_ints(shifts), as_ints(() if dims is None else dims)
    if not steps:
        raise RuntimeError("`shifts` required")
    if len(steps) != len(axes) and not (len(steps) == 1 and not axes):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(axes)}")
    if axes and not input._array.ndim:
        raise IndexError(f"Dimension specified as {axes[0]} but tensor has no dimensions")
    if not input._array.size:  # nothing moves, whatever the dimensions are
        if not all(map(fits_int64, axes)):
            raise ValueError("Overflow when unpacking long long: roll() was given dims beyond 64 bits")
        axes = axes[:0]
    return _roll(input, steps, tuple([wrap_dim(each, input._array.ndim) for each in axes]))


@primitive("FlipBackward0", axes=Along("dims"), self=lambda grad, dims: grad.flip(dims))
def _flip(self: Array, dims: tuple[int, ...]) -> Array:
    return _flipped(self, dims)


def _flipped(array: Any, dims: tuple[int, ...]) -> Any:
    if array.size >= LARGE:
        done = arrays.flipped(array, dims)
        if done is not None:
            return done
    turned = array[_turning(array.ndim, dims)]
    if is_plain(array) and array.size < LARGE:
        return turned.copy()
    result = empty_like(array, None, array.dtype)
    _fill(result, turned)
    return result


@functools.lru_cache(256)
def _turning(ndim: int, dims: tuple[int, ...]) -> tuple[slice, ...]:
    """The index that goes backwards along `dims`."""
    return tuple([slice(None, None, -1 if dim in dims else None) for dim in range(ndim)])


@public()
def flip(input: Tensor, dims: Any, *more: int) -> Tensor:
    """`input` with the order along `dims` reversed, in memory of its own."""
    return _flip(input, distinct_dims(as_shape((dims, *more)), input._array.ndim))


@public()
def fliplr(input: Tensor) -> Tensor:
    """`input` with its second dimension reversed."""
    if input._array.ndim < 2:
        raise RuntimeError(f"Input must be >= 2-d. (fliplr of shape {list(input._array.shape)})")
    return flip(input, 1)


@public()
def flipud(input: Tensor) -> Tensor:
    """`input` with its first dimension reversed."""
    if input._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d. (flipud of a 0-d tensor)")
    return flip(input, 0)


@primitive("Rot90Backward0", axes=Along("dims"), self=lambda grad, k, dims: grad.rot90(-k, dims))
def _rot90(self: Array, k: int, dims: tuple[int, ...]) -> Array:
    turns = k % 4
    if turns == 0:
        return self.copy("C")
    if turns == 2:
        return _flipped(self, dims)
    return _flipped(self, (dims[1 if turns == 1 else 0],)).swapaxes(*dims)


@public()
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """`input` turned by `k` right angles in the plane of two dimensions, from the first towards the second."""
    plane = as_shape((dims,))
    ndim = input._array.ndim
    if len(plane) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(plane)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    axes = tuple([wrap_dim(each, ndim) for each in plane])
    if axes[0] == axes[1]:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {plane[0]} and dim1 = {plane[1]}")
    return _rot90(input, k, axes)


# ----- triangles and diagonals --------------------------------------------------------------------------------------


_MANY = 2**16
"""Masks of so many elements are not kept."""


def _lower(array: Any, diagonal: int) -> Any:
    """Which elements of a matrix are on a diagonal or below it."""
    rows, columns = array.shape[-2:]
    if type(array) is np.ndarray and rows * columns < _MANY and type(diagonal) is int:
        return _kept_lower(rows, columns, diagonal)
    return np.arange(diagonal, rows + diagonal, like=array)[:, None] >= np.arange(columns, like=array)


@functools.lru_cache(64)
def _kept_lower(rows: int, columns: int, diagonal: int) -> Any:
    return np.arange(diagonal, rows + diagonal)[:, None] >= np.arange(columns)


def _kept(self: Any, keep: Any) -> Any:
    result = np.zeros(self.shape, self.dtype, like=self)
    np.copyto(result, self, where=keep)
    return result


@primitive("TrilBackward0", axes=MATRICES, self=lambda grad, diagonal: grad.tril(diagonal))
def _tril(self: Array, diagonal: int) -> Array:
    done = arrays.triangle(self, diagonal, True) if self.size >= LARGE else None
    return _kept(self, _lower(self, diagonal)) if done is None else done


@primitive("TriuBackward0", axes=MATRICES, self=lambda grad, diagonal: grad.triu(diagonal))
def _triu(self: Array, diagonal: int) -> Array:
    done = arrays.triangle(self, diagonal, False) if self.size >= LARGE else None
    return _kept(self, ~_lower(self, diagonal - 1)) if done is None else done


def _check_matrix(input: Tensor, name: str) -> None:
    if input._array.ndim < 2:
        raise RuntimeError(
            f"{name}: input tensor must have at least 2 dimensions, got shape {list(input._array.shape)}"
        )


@public(inplace=True, out=True)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the matrices in `input`, up to the given diagonal; zeros elsewhere."""
    _check_matrix(input, "tril")
    return _tril(input, diagonal)


@public(inplace=True, out=True)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the matrices in `input`, from the given diagonal on; zeros elsewhere."""
    _check_matrix(input, "triu")
    return _triu(input, diagonal)


@primitive(
    "DiagEmbedBackward0",
    axes=Along("dim1", "dim2", extra=1),
    self=lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2),
)
def _diag_embed(self: Array, offset: int, dim1: int, dim2: int) -> Array:
    size = self.shape[-1] + abs(offset)
    shape = list(self.shape[:-1])
    for dim in sorted((dim1, dim2)):
        shape.insert(dim, size)
    result = np.zeros(shape, self.dtype, like=self)
    _diagonal_of(result, offset, dim1, dim2)[...] = self
    return result


@public()
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices with the last dimension of `input` as diagonal and zeros elsewhere."""
    dims = diagonal_dims(dim1, dim2, input._array.ndim + 1)
    return _diag_embed(input, offset, *dims)


@public(out=True)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix with a vector as its diagonal."""
    from .view_copy import diagonal_copy

    ndim = input._array.ndim
    if ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    if ndim == 1:
        return diag_embed(input, diagonal)
    return diagonal_copy(input, diagonal)


@public()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with the elements of `input` as its diagonal."""
    return diag_embed(reshaped(input, (input._array.size,)), offset)


def _trace_gradient(grad: Tensor, self_sym_sizes: tuple[int, ...]) -> Tensor:
    spread = grad.expand((min(self_sym_sizes),))
    return _diagonal_backward(spread, self_sym_sizes, 0, 0, 1)


@primitive("TraceBackward0", self=_trace_gradient)
def _trace(self: Array, dtype: Any) -> Array:
    if self.dtype.itemsize == 2 and dtype.category == FLOAT:  # half precision is summed in float32
        return self.diagonal().astype(np.float32).sum().astype(dtype.numpy)
    return self.diagonal().sum(dtype=dtype.numpy)


@public(autocast=on(cpu=FULL))
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    if input._array.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input._array.ndim}")
    return _trace(input, int64 if input.dtype.category in (BOOL, INTEGER) else input.dtype)


# ----- parts replaced -----------------------------------------------------------------------------------------------


def _check_source(src: Tensor, shape: tuple[int, ...]) -> None:
    if src._array.shape != shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src._array.shape)}, slice size "
            f"= {list(shape)}"
        )


def _same_strides(array: Any) -> Any:
    """A copy with the strides of `array`, gaps and all, unless elements share memory."""
    shared = overlaps(array.shape, array.strides)
    result = empty_array(
        array.shape,
        strides_like(array, None) if shared else element_strides(array),
        array.dtype,
        backend_of_array(array),
    )
    result[...] = array
    return result


def _replaced(array: Any, index: Any, value: Any) -> Any:
    result = _same_strides(array)
    result[index] = value
    return result


def _select_scatter_gradient(grad: Tensor, dim: int, index: int) -> Tensor:
    zeros = grad.new_zeros(grad.select(dim, index).shape)
    return _select_scatter(grad, zeros, dim, index)


@primitive(
    "SelectScatterBackward0",
    axes=Along("dim"),
    self=_select_scatter_gradient,
    src=lambda grad, dim, index: grad.select(dim, index),
)
def _select_scatter(self: Array, src: Array, dim: int, index: int) -> Array:
    return _replaced(self, (*_ALL[dim], index, ...), src)


@public()
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of `input` with `src` at one position of `dim`."""
    dim, index = selected_index(input._array.shape, dim, index)
    shape = input._array.shape
    _check_source(src, shape[:dim] + shape[dim + 1 :])
    return _select_scatter(input, src, dim, index)


def _slice_of(grad: Tensor, dim: int, start: int, end: int, step: int) -> Tensor:
    return _slice(grad, dim, start, end, step)


def _slice_scatter_gradient(grad: Tensor, dim: int, start: int, end: int, step: int) -> Tensor:
    zeros = grad.new_zeros(_slice_of(grad, dim, start, end, step).shape)
    return _slice_scatter(grad, zeros, dim, start, end, step)


@primitive("SliceScatterBackward0", axes=Along("dim"), self=_slice_scatter_gradient, src=_slice_of)
def _slice_scatter(self: Array, src: Array, dim: int, start: int, end: int, step: int) -> Array:
    return _replaced(self, (*_ALL[dim], slice(start, end, step)), src)


@public(out=True)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of `input` with `src` at the positions `start:end:step` of `dim`."""
    shape = input._array.shape
    dim = wrap_dim(dim, len(shape))
    first, last = slice_bounds(shape[dim], start, end, step)
    _check_source(src, (*shape[:dim], len(range(first, last, step)), *shape[dim + 1 :]))
    return _slice_scatter(input, src, dim, first, last, step)


def _diagonal_scatter_gradient(grad: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    zeros = grad.new_zeros(grad.diagonal(offset, dim1, dim2).shape)
    return _diagonal_scatter(grad, zeros, offset, dim1, dim2)


@primitive(
    "DiagonalScatterBackward0",
    axes=Along("dim1", "dim2"),
    self=_diagonal_scatter_gradient,
    src=lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2),
)
def _diagonal_scatter(self: Array, src: Array, offset: int, dim1: int, dim2: int) -> Array:
    result = _same_strides(self)
    _diagonal_of(result, offset, dim1, dim2)[...] = src
    return result


@public()
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of `input` with `src` on its diagonal."""
    dims = diagonal_dims(dim1, dim2, input._array.ndim)
    _check_source(src, input._array.diagonal(offset, *dims).shape)
    return _diagonal_scatter(input, src, offset, *dims)


@public(function=False)
def fill_diagonal_(input: Tensor, fill_value: Number, wrap: bool = False) -> Tensor:
    """Set the elements whose indices are all equal; with `wrap` the diagonal of a tall matrix starts anew below."""
    shape, offset = input._array.shape, input.storage_offset()
    if len(shape) < 2:
        raise RuntimeError(f"dimensions must larger than 1: fill_diagonal_ of shape {list(shape)}")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError(f"all dimensions of input must be of equal length: fill_diagonal_ of shape {list(shape)}")
    step = sum(input.stride())
    input.as_strided((min(shape),), (step,), offset).fill_(fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        for row in range(shape[1] + 1, shape[0], shape[1] + 1):
            length = min(shape[1], shape[0] - row)
            input.as_strided((length,), (step,), offset + row * input.stride(0)).fill_(fill_value)
    return input


def _outside_gradient(
    grad: Tensor,
    self_sym_sizes: Any,
    self_sym_strides: Any,
    self_offset: int,
    size: Any,
    stride: Any,
    storage_offset: Any,
) -> Tensor:
    own, part = own_and_part(self_sym_sizes, self_sym_strides, self_offset, size, stride, storage_offset)
    kept = ~np.isin(positions(own), positions(part))
    return grad * constant_beside(kept.astype(grad._array.dtype), grad)


def _inside_gradient(
    grad: Tensor,
    self_sym_sizes: Any,
    self_sym_strides: Any,
    self_offset: int,
    size: Any,
    stride: Any,
    storage_offset: Any,
) -> Tensor:
    own, part = own_and_part(self_sym_sizes, self_sym_strides, self_offset, size, stride, storage_offset)
    return _restride(grad, own, part, None)


@primitive(
    "AsStridedScatterBackward0",
    self=_outside_gradient,
    src=_inside_gradient,
    shape=lambda self, src, size, stride, storage_offset: np.empty_like(self),
)
def _as_strided_scatter(
    self: Array, src: Array, size: tuple[int, ...], stride: tuple[int, ...], storage_offset: int | None
) -> Array:
    owner = owner_of(self)
    memory, item = owner.copy("K"), self.itemsize
    own_start = address_of(self) - address_of(owner)
    start = own_start if storage_offset is None else storage_offset * item
    window(memory, self.dtype, size, tuple([step * item for step in stride]), start)[...] = src
    return window(memory, self.dtype, self.shape, self.strides, own_start)


@public()
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A copy of `input` with `src` in the window that `as_strided` would give."""
    size, stride, storage_offset = strided_arguments(input, size, stride, storage_offset)
    _check_source(src, size)
    if any(step == 0 and extent > 1 for step, extent in zip(input.stride(), input._array.shape, strict=True)):
        input = _contiguous_clone(input)  # an element of an expanded tensor is in several places
    return _as_strided_scatter(input, src, size, stride, storage_offset)
