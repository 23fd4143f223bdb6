"""A tensor in parts: split, chunk, unbind and their like."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.arrays.quick import dim_moved
from ..._core.size import fits_int64
from ..._core.tensor import Tensor
from ..._dispatch.arguments.scalar import integer
from ..._dispatch.axes import Along
from ..._dispatch.dispatch import Array, several
from ..._dispatch.gradients.variants import variant
from ..._dispatch.public.overrides import has_override, run_override
from ..._dispatch.public.registry import export_method, guard, public
from .parts import _slice, _slice_backward, slice_bounds, sliced
from .view import _ALL, as_ints, wrap_dim

_MANY = 8
"""So many parts are sooner the elements of an array of one dimension more than slices."""

Split = Callable[..., tuple[Tensor, ...]]
"""Cuts a tensor into parts."""


def _joined(grads: Sequence[Any], sizes: Sequence[int], shape: tuple[int, ...], dim: int) -> list[Any]:
    """The gradient of a tensor from those of its parts along `dim`; a part without one counts as zeros."""
    from .join import cat

    known = [number for number, grad in enumerate(grads) if grad is not None]
    if not known:
        return [None]
    present = grads[known[0]]
    if len(known) == 1:
        start = sum(sizes[: known[0]])
        return [_slice_backward(present, shape, dim, start, start + sizes[known[0]], 1)]
    parts = [
        present.new_zeros((*shape[:dim], size, *shape[dim + 1 :])) if grad is None else grad
        for grad, size in zip(grads, sizes, strict=True)
    ]
    return [cat(parts, dim)]


def _equal_sizes(size: int, split_size: int) -> list[int]:
    if size == 0:
        return [0]
    return [min(split_size, size - start) for start in range(0, size, split_size)]


def _parts(array: Any, sizes: Sequence[int], dim: int) -> tuple[Any, ...]:
    parts, start, lead = [], 0, _ALL[dim]
    for size in sizes:
        end = start + size
        parts.append(array[(*lead, slice(start, end))] if size > 0 else sliced(array, dim, start, end, 1))
        start = end
    return tuple(parts)


def _equal_parts(array: Any, split_size: int, dim: int) -> tuple[Any, ...]:
    """Parts of one size, the last of which may be smaller; steps of dimensions of size 1 are as slices have them."""
    shape = array.shape
    count = shape[dim] // split_size if split_size else 0
    if count < _MANY or type(array) is not np.ndarray or not array.flags.c_contiguous or 1 in shape:
        return _parts(array, _equal_sizes(shape[dim], split_size), dim)
    end = count * split_size
    whole = array if end == shape[dim] else array[(*_ALL[dim], slice(end))]
    parts = [*dim_moved(whole.reshape(*shape[:dim], count, split_size, *shape[dim + 1 :]), dim, 0)]
    if end < shape[dim]:
        parts.append(array[(*_ALL[dim], slice(end, None))])
    return tuple(parts)


def _split_gradient(grads: Any, needs: Any, self_sym_sizes: Any, split_size: int, dim: int) -> list[Any]:
    return _joined(grads, _equal_sizes(self_sym_sizes[dim], split_size), self_sym_sizes, dim)


@several("SplitBackward0", axes=Along("dim"), view=True, joint=_split_gradient)
def _split(self: Array, split_size: int, dim: int) -> Array:
    return _equal_parts(self, split_size, dim)


def _split_with_sizes_gradient(grads: Any, needs: Any, self_sym_sizes: Any, split_sizes: Any, dim: int) -> list[Any]:
    return _joined(grads, split_sizes, self_sym_sizes, dim)


@several("SplitWithSizesBackward0", axes=Along("dim"), view=True, joint=_split_with_sizes_gradient)
def _split_with_sizes(self: Array, split_sizes: tuple[int, ...], dim: int) -> Array:
    return _parts(self, split_sizes, dim)


_unsafe_split = variant(_split, "unsafe_split", "UnsafeSplitBackward0", view=False)
_unsafe_split_with_sizes = variant(
    _split_with_sizes, "unsafe_split_with_sizes", "UnsafeSplitWithSizesBackward0", view=False
)


def split_arguments(input: Tensor, split_size: int, dim: int) -> tuple[int, int]:
    """Size of the parts and dimension of a `split`, checked."""
    shape = input._array.shape
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, len(shape))
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    if split_size == 0 and shape[dim]:
        raise RuntimeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {shape[dim]} (dimension "
            f"{dim} of {list(shape)})"
        )
    return split_size, dim


def sizes_arguments(input: Tensor, split_sizes: Any, dim: int) -> tuple[tuple[int, ...], int]:
    """Sizes of the parts and dimension of a `split_with_sizes`, checked."""
    shape, sizes = input._array.shape, as_ints(split_sizes)
    if not shape:
        raise RuntimeError("split_with_sizes expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, len(shape))
    if min(sizes, default=0) < 0:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}"
        )
    if sum(sizes) != shape[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[dim]} (input tensor's size at dimension "
            f"{dim}), but got split_sizes={list(sizes)}"
        )
    return sizes, dim


def _whole(name: str, value: Any) -> int:
    """A size or a number of parts."""
    number = integer(value)
    if number is None:
        raise TypeError(
            f"{name}() received an invalid combination of arguments: sections must be an int, a tuple of ints or a "
            f"Tensor, not {type(value).__name__}"
        )
    if not fits_int64(number):
        raise ValueError(f"Overflow when unpacking long long: {name}() was given sections beyond 64 bits")
    return number


@public()
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of `tensor` along `dim`, of one size (the last may be smaller) or of the given sizes; they share memory."""
    if isinstance(split_size_or_sections, (tuple, list)):
        return _split_with_sizes(tensor, *sizes_arguments(tensor, split_size_or_sections, dim))
    return _split(tensor, *split_arguments(tensor, _whole("split", split_size_or_sections), dim))


def _method_split(input: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts along `dim`, of one size (the last may be smaller) or of the given sizes; they share memory."""
    if has_override((input,)):
        return run_override(split, (input,), (input, split_size, dim), {})
    return split(input, split_size, dim)


_method_split.__qualname__ = "Tensor.split"
export_method(guard(_method_split, "split"), "split")


@public()
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of `input` along `dim` of the given sizes; they share memory."""
    return _split_with_sizes(input, *sizes_arguments(input, split_sizes, dim))


@public()
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`split` whose parts are not tracked as views: do not change them in place if the input is still needed."""
    return _unsafe_split(input, *split_arguments(input, split_size, dim))


@public()
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes` whose parts are not tracked as views."""
    return _unsafe_split_with_sizes(input, *sizes_arguments(input, split_sizes, dim))


def _chunked(input: Tensor, chunks: int, dim: int, equal: Split, given: Split) -> tuple[Tensor, ...]:
    shape = input._array.shape
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrap_dim(dim, len(shape))
    if shape[dim] == 0:
        return given(input, (0,) * chunks, dim)
    return equal(input, (shape[dim] + chunks - 1) // chunks, dim)


@public()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of equal size along `dim` (the last may be smaller); they share memory."""
    return _chunked(input, chunks, dim, _split, _split_with_sizes)


@public()
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk` whose parts are not tracked as views."""
    return _chunked(input, chunks, dim, _unsafe_split, _unsafe_split_with_sizes)


def _unbind_gradient(grads: Any, needs: Any, dim: int) -> list[Any]:
    from .join import stack

    present = next((grad for grad in grads if grad is not None), None)
    if present is None:
        return [None]
    return [stack([present.new_zeros(present.shape) if grad is None else grad for grad in grads], dim)]


@several("UnbindBackward0", axes=Along("dim"), view=True, joint=_unbind_gradient)
def _unbind(self: Array, dim: int) -> Array:
    if self.ndim > 1 and type(self) is np.ndarray:
        return tuple(dim_moved(self, dim, 0))
    index = _ALL[dim]
    return tuple([self[(*index, position, ...)] for position in range(self.shape[dim])])


def unbind_dim(input: Tensor, dim: int) -> int:
    """The dimension of an `unbind`, checked."""
    if not input._array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, input._array.ndim)


@public()
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The parts of `input` at each position of `dim`; they share memory."""
    return _unbind(input, unbind_dim(input, dim))


_PARTS = {"indices": "sections"}
"""The number of parts in one overload of PyTorch is called so in another, where it is the places of the cuts."""


@public(also={**_PARTS, "tensor_indices_or_sections": "sections"})
def tensor_split(input: Tensor, sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """`input` along `dim` in a number of nearly equal parts, or cut at the given positions; they share memory."""
    shape = input._array.shape
    if not shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    dim = wrap_dim(dim, len(shape))
    cuts = _as_indices(sections)
    if isinstance(cuts, int):
        if cuts <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {cuts}")
        if cuts >= 1 << 40:
            raise MemoryError(f"{cuts} sections need {cuts * 64} bytes")
        small, larger = divmod(shape[dim], cuts)
        ends = [number * small + min(number, larger) for number in range(1, cuts + 1)]
        return tuple([_slice(input, dim, start, end, 1) for start, end in zip([0, *ends[:-1]], ends, strict=True)])
    parts = []
    for first, last in zip([0, *cuts], [*cuts, shape[dim]], strict=True):
        parts.append(_slice(input, dim, *slice_bounds(shape[dim], first, last, 1), 1))
    return tuple(parts)


def _as_indices(sections: Any) -> int | list[int]:
    if isinstance(sections, Tensor):
        if sections.dtype.name != "int64" or sections.ndim > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor "
                f"of dtype int64, but got a tensor with {sections.ndim} dims and dtype "
                f"{sections.dtype}"
            )
        places: int | list[int] = sections.tolist()
        return places
    if isinstance(sections, (tuple, list)):
        return [operator.index(each) for each in sections]
    return _whole("tensor_split", sections)


def _split_like_numpy(input: Tensor, name: str, least: int, dim: int, sections: Any) -> tuple[Tensor, ...]:
    shape = input._array.shape
    if len(shape) < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with "
            f"{len(shape)} dimensions!"
        )
    if isinstance(sections, int):
        count = _whole(name, sections)
        if count == 0 or shape[dim] % count:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {shape[dim]} "
                f"is not divisible by the split_size {count}!"
            )
    return tensor_split(input, sections, dim)


@public(method=False, also=_PARTS)
def hsplit(input: Tensor, sections: Any) -> tuple[Tensor, ...]:
    """`input` cut along its second dimension, or the only one it has."""
    return _split_like_numpy(input, "hsplit", 1, 0 if input._array.ndim == 1 else 1, sections)


@public(method=False, also=_PARTS)
def vsplit(input: Tensor, sections: Any) -> tuple[Tensor, ...]:
    """`input` cut along its first dimension."""
    return _split_like_numpy(input, "vsplit", 2, 0, sections)


@public(method=False, also=_PARTS)
def dsplit(input: Tensor, sections: Any) -> tuple[Tensor, ...]:
    """`input` cut along its third dimension."""
    return _split_like_numpy(input, "dsplit", 3, 2, sections)


def _split_method(split_function: Split) -> None:
    """The method, which takes the places of the cuts one by one as well."""

    def method(input: Tensor, *indices: Any) -> tuple[Tensor, ...]:
        if not indices:
            raise TypeError(f"{split_function.__name__}() received no sections: give their number, or where to cut")
        return split_function(input, indices[0] if len(indices) == 1 else indices)

    method.__doc__ = split_function.__doc__
    public(function=False, name=split_function.__name__, also={"sections": "indices"})(method)


for _function in (hsplit, vsplit, dsplit):
    _split_method(_function)
