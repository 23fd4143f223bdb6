"""Views of parts: one position, a range, a diagonal, windows that move along a dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.dtype import INTEGER
from ..._core.geometry.strided_windows import restrided
from ..._core.tensor import Tensor
from ..._dispatch.axes import Along
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.registry import public
from .view import _ALL, _as_int, wrap_dim


@primitive(
    "SelectBackwardBackward0",
    axes=Along("dim", sizes="input_sizes"),
    grad_output=lambda grad, dim, index: grad.select(dim, index),
)
def _select_backward(grad_output: Array, input_sizes: tuple[int, ...], dim: int, index: int) -> Array:
    result = np.zeros(input_sizes, grad_output.dtype, like=grad_output)
    result[_ALL[dim] + (index, ...)] = grad_output
    return result


@primitive(
    "SelectBackward0",
    axes=Along("dim"),
    view=True,
    self=lambda grad, self_sym_sizes, dim, index: _select_backward(grad, self_sym_sizes, dim, index),
)
def _select(self: Array, dim: int, index: int) -> Array:
    return self[_ALL[dim] + (index, ...)]


def selected_index(shape: tuple[int, ...], dim: int, index: Any) -> tuple[int, int]:
    """Dimension and position of a `select`, counted from the front."""
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    place = index if type(index) is int else _as_int(index)
    size = shape[dim]
    if not -size <= place < size:
        raise IndexError(f"select(): index {place} out of range for tensor of size {list(shape)} at dimension {dim}")
    return dim, place % size


@public()
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The part of `input` at one position of `dim`, without this dimension; shares memory."""
    return _select(input, *selected_index(input._array.shape, dim, index))


def _slice_again(grad: Tensor, dim: int, start: int, end: int, step: int) -> Tensor:
    return _slice(grad, dim, start, end, step)


@primitive("SliceBackwardBackward0", axes=Along("dim", sizes="input_sizes"), grad_output=_slice_again)
def _slice_backward(
    grad_output: Array, input_sizes: tuple[int, ...], dim: int, start: int, end: int, step: int
) -> Array:
    result = np.zeros(input_sizes, grad_output.dtype, like=grad_output)
    result[_ALL[dim] + (slice(start, end, step),)] = grad_output
    return result


@primitive(
    "SliceBackward0",
    axes=Along("dim"),
    view=True,
    self=lambda grad, self_sym_sizes, dim, start, end, step: _slice_backward(
        grad, self_sym_sizes, dim, start, end, step
    ),
)
def _slice(self: Array, dim: int, start: int, end: int, step: int) -> Array:
    return sliced(self, dim, start, end, step)


def sliced(array: Any, dim: int, start: int, end: int, step: int) -> Any:
    """The positions `start:end:step` of `dim`, with the offset on the storage that PyTorch gives them even if none."""
    if start < end:
        return array[_ALL[dim] + (slice(start, end, step),)]
    strides = (*array.strides[:dim], array.strides[dim] * step, *array.strides[dim + 1 :])
    return restrided(array, (*array.shape[:dim], 0, *array.shape[dim + 1 :]), strides, shift=start * array.strides[dim])


def slice_bounds(size: int, start: Any, end: Any, step: int) -> tuple[int, int]:
    """`start` and `end` of a slice of a dimension of `size`, between 0 and `size`; None means the whole of it."""
    if step <= 0:
        raise RuntimeError(f"slice step must be positive, got {step}")
    first, last, _ = slice(start, end, step).indices(size)
    return first, max(first, last)


def narrowed(shape: tuple[int, ...], dim: int, start: Any, length: int) -> tuple[int, int]:
    """Dimension and first position of a `narrow`, counted from the front."""
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative. (got {length})")
    dim = wrap_dim(dim, len(shape))
    if isinstance(start, Tensor) and (start._array.ndim or start._kind.dtype.category != INTEGER):
        raise RuntimeError(f"start must be an 0-dim integral Tensor. (got shape {list(start.shape)}, {start.dtype})")
    first = start if type(start) is int else _as_int(start)
    size = shape[dim]
    if not -size <= first <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {first})")
    if first < 0:
        first += size
    if first + length > size:
        raise RuntimeError(
            f"start ({first}) + length ({length}) exceeds dimension size ({size}). (narrow along dimension {dim} of "
            f"shape {list(shape)})"
        )
    return dim, first


@public()
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """The `length` positions of `dim` from `start` on; shares memory."""
    dim, start = narrowed(input._array.shape, dim, start, length)
    return _slice(input, dim, start, start + length, 1)


def _diagonal_of(array: Any, offset: int, dim1: int, dim2: int) -> Any:
    if -array.shape[dim1] < offset < array.shape[dim2]:
        found = array.diagonal(offset, dim1, dim2)
    else:  # nothing, where the array begins
        found = array.diagonal(0, dim1, dim2)[..., :0]
    if found.flags.writeable != array.flags.writeable:  # NumPy hands it out read-only
        found.flags.writeable = array.flags.writeable
    return found


@primitive(
    "DiagonalBackwardBackward0",
    axes=Along("dim1", "dim2", sizes="input_sizes"),
    grad_output=lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2),
)
def _diagonal_backward(grad_output: Array, input_sizes: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Array:
    result = np.zeros(input_sizes, grad_output.dtype, like=grad_output)
    _diagonal_of(result, offset, dim1, dim2)[...] = grad_output
    return result


@primitive(
    "DiagonalBackward0",
    axes=Along("dim1", "dim2"),
    view=True,
    self=lambda grad, self_sym_sizes, offset, dim1, dim2: _diagonal_backward(grad, self_sym_sizes, offset, dim1, dim2),
)
def _diagonal(self: Array, offset: int, dim1: int, dim2: int) -> Array:
    return _diagonal_of(self, offset, dim1, dim2)


def diagonal_dims(dim1: int, dim2: int, ndim: int) -> tuple[int, int]:
    """Both dimensions of a diagonal, counted from the front and distinct."""
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


@public()
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of the matrices in `dim1` and `dim2`, as the last dimension; shares memory."""
    return _diagonal(input, offset, *diagonal_dims(dim1, dim2, input._array.ndim))


def _unfold_geometry(shape: Any, strides: Any, itemsize: int, dimension: int, size: int, step: int) -> Any:
    if not shape:
        return (size,), (itemsize,)
    count = (shape[dimension] - size) // step + 1
    return (
        (*shape[:dimension], count, *shape[dimension + 1 :], size),
        (*strides[:dimension], strides[dimension] * step, *strides[dimension + 1 :], strides[dimension]),
    )


@primitive(
    "UnfoldBackwardBackward0",
    grad_in=lambda grad, dim, size, step: grad.unfold(dim, size, step),
)
def _unfold_backward(grad_in: Array, input_sizes: tuple[int, ...], dim: int, size: int, step: int) -> Array:
    result = np.zeros(input_sizes, grad_in.dtype, like=grad_in)
    if not input_sizes:
        return result + grad_in.sum()
    for position in range(size):  # windows may overlap: each position within the window alone does not
        part = slice(position, position + (grad_in.shape[dim] - 1) * step + 1, step)
        result[_ALL[dim] + (part,)] += grad_in[..., position]
    return result


@primitive(
    "UnfoldBackward0",
    view=True,
    self=lambda grad, self_sym_sizes, dimension, size, step: _unfold_backward(
        grad, self_sym_sizes, dimension, size, step
    ),
)
def _unfold(self: Array, dimension: int, size: int, step: int) -> Array:
    return restrided(self, *_unfold_geometry(self.shape, self.strides, self.itemsize, dimension, size, step))


def unfold_dimension(shape: tuple[int, ...], dimension: int, size: int, step: int) -> int:
    """The dimension of an `unfold`, whose arguments are checked."""
    dimension = wrap_dim(dimension, len(shape))
    given = shape[dimension] if shape else 1
    if size > given:
        raise RuntimeError(f"maximum size for tensor at dimension {dimension} is {given} but size is {size}")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return dimension


@public(function=False)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of `size` elements along `dimension`, `step` apart, as a new last dimension; shares memory."""
    dimension = unfold_dimension(input._array.shape, dimension, size, step)
    return _unfold(input, dimension, size, step)
