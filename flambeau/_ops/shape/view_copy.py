"""The views again, each with memory of its own: `permute_copy`, `view_copy`, ..."""

from __future__ import annotations

from typing import Any

from ..._core.arrays.views import row_strides_of
from ..._core.tensor import Tensor
from ..._dispatch.axes import Along
from ..._dispatch.changes.exact_out import store_exactly, store_resized
from ..._dispatch.dispatch import Array, Primitive, Results, primitive
from ..._dispatch.gradients.variants import variant
from ..._dispatch.public.registry import public
from . import complex_view, parts, split, strided, view
from . import named_shapes as shape


def _copying(original: Primitive[..., Results], name: str) -> Primitive[..., Results]:
    recorded = original.node_class
    assert recorded is not None
    return variant(original, name, f"{recorded.__name__}_copy", copies=True)


_alias_copy = _copying(shape._alias, "alias_copy")
_as_strided_copy = _copying(strided._as_strided, "as_strided_copy")
_diagonal_copy = _copying(parts._diagonal, "diagonal_copy")
_expand_copy = _copying(view._expand, "expand_copy")
_permute_copy = _copying(view._permute, "permute_copy")
_select_copy = _copying(parts._select, "select_copy")
_slice_copy = _copying(parts._slice, "slice_copy")
_split_copy = _copying(split._split, "split_copy")
_split_with_sizes_copy = _copying(split._split_with_sizes, "split_with_sizes_copy")
_squeeze_all_copy = _copying(view._squeeze_all, "squeeze_copy")
_squeeze_dim_copy = _copying(view._squeeze_dim, "squeeze_dim_copy")
_squeeze_dims_copy = _copying(view._squeeze_dims, "squeeze_dims_copy")
_t_copy = _copying(view._t, "t_copy")
_transpose_copy = _copying(view._transpose, "transpose_copy")
_unbind_copy = _copying(split._unbind, "unbind_copy")
_unfold_copy = _copying(parts._unfold, "unfold_copy")
_unsqueeze_copy = _copying(view._unsqueeze, "unsqueeze_copy")
_view_as_complex_copy = _copying(complex_view._view_as_complex, "view_as_complex_copy")
_view_as_real_copy = _copying(complex_view._view_as_real, "view_as_real_copy")
_view_copy = _copying(view._view, "view_copy")


@public(method=False, out=True)
def alias_copy(input: Tensor) -> Tensor:
    """A contiguous copy."""
    return _alias_copy(input)


@public(method=False, out=True)
def detach_copy(input: Tensor) -> Tensor:
    """A contiguous copy outside the graph."""
    return _alias_copy(input.detach())


@public(method=False, out=True)
def as_strided_copy(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """`as_strided` with memory of its own."""
    arguments = strided.strided_arguments(input, size, stride, storage_offset)
    if input._kind.dataless:  # there is no memory to copy a window of
        return _alias_copy(strided.as_strided(input, *arguments))
    return _as_strided_copy(input, *arguments)


@public(method=False, out=True)
def diagonal_copy(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """`diagonal` with memory of its own."""
    return _diagonal_copy(input, offset, *parts.diagonal_dims(dim1, dim2, input._array.ndim))


@public(method=False, out=True)
def expand_copy(input: Tensor, size: Any, *, implicit: bool = False) -> Tensor:
    """`expand` with memory of its own."""
    return _expand_copy(input, view.expanded_shape(input._array.shape, view.as_shape((size,))))


@public(method=False, out=True)
def permute_copy(input: Tensor, dims: Any) -> Tensor:
    """`permute` with memory of its own."""
    return _permute_copy(input, view.permutation((dims,), input._array.ndim))


@public(method=False, out=True)
def select_copy(input: Tensor, dim: int, index: int) -> Tensor:
    """`select` with memory of its own."""
    return _select_copy(input, *parts.selected_index(input._array.shape, dim, index))


@public(method=False, out=True)
def slice_copy(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """The positions `start:end:step` of `dim`, with memory of their own."""
    dim = view.wrap_dim(dim, input._array.ndim)
    bounds = parts.slice_bounds(input._array.shape[dim], start, end, step)
    return _slice_copy(input, dim, *bounds, step)


@primitive(
    "NarrowCopyBackward0",
    axes=Along("dim"),
    self=lambda grad, self_sym_sizes, dim, start, length: parts._slice_backward(
        grad, self_sym_sizes, dim, start, start + length, 1
    ),
)
def _narrow_copy(self: Array, dim: int, start: int, length: int) -> Array:
    return self[view._ALL[dim] + (slice(start, start + length),)].copy()


@public(out=store_resized)
def narrow_copy(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`narrow` with memory of its own."""
    if length < 0:
        size = input._array.shape[dim] if dim < input._array.ndim else 0
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    if dim >= input._array.ndim > 0:
        raise RuntimeError(
            f"narrow_copy(): dim {dim} is out of range for a tensor of shape {list(input._array.shape)}: it must be "
            f"in [{-input._array.ndim}, {input._array.ndim - 1}]"
        )
    dim, start = parts.narrowed(input._array.shape, dim, start, length)
    return _narrow_copy(input, dim, start, length)


def _store_parts(results: tuple[Tensor, ...], out: Any, operands: tuple[Any, ...]) -> None:
    """As in PyTorch, a call with `out=` returns nothing."""
    store_exactly(results, out, operands)


@public(method=False, out=_store_parts)
def split_copy(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`split` into tensors with memory of their own."""
    return _split_copy(input, *split.split_arguments(input, split_size, dim))


@public(method=False, out=_store_parts)
def split_with_sizes_copy(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes` into tensors with memory of their own."""
    return _split_with_sizes_copy(input, *split.sizes_arguments(input, split_sizes, dim))


@public(method=False, out=True)
def squeeze_copy(input: Tensor, dim: Any = None) -> Tensor:
    """`squeeze` with memory of its own."""
    if dim is None:
        return _squeeze_all_copy(input)
    ndim = input._array.ndim
    if isinstance(dim, (tuple, list)):
        return _squeeze_dims_copy(input, view.distinct_dims(dim, ndim))
    return _squeeze_dim_copy(input, view.wrap_dim(dim, ndim))


@public(method=False, out=True)
def t_copy(input: Tensor) -> Tensor:
    """`t` with memory of its own."""
    if input._array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D")
    return _t_copy(input)


@public(method=False, out=True)
def transpose_copy(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """`transpose` with memory of its own."""
    ndim = input._array.ndim
    return _transpose_copy(input, view.wrap_dim(dim0, ndim), view.wrap_dim(dim1, ndim))


@public(method=False, out=_store_parts)
def unbind_copy(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """`unbind` into tensors with memory of their own."""
    return _unbind_copy(input, split.unbind_dim(input, dim))


@public(method=False, out=True)
def unfold_copy(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """`unfold` with memory of its own."""
    dimension = parts.unfold_dimension(input._array.shape, dimension, size, step)
    return _unfold_copy(input, dimension, size, step)


@public(method=False, out=True)
def unsqueeze_copy(input: Tensor, dim: int) -> Tensor:
    """`unsqueeze` with memory of its own."""
    return _unsqueeze_copy(input, view.wrap_dim(dim, input._array.ndim + 1))


@public(method=False, out=True)
def view_as_complex_copy(input: Tensor) -> Tensor:
    """`view_as_complex` with memory of its own."""
    complex_view.check_pairs(input)
    return _view_as_complex_copy(input)


@public(method=False, out=True)
def view_as_real_copy(input: Tensor) -> Tensor:
    """`view_as_real` with memory of its own."""
    if not input._kind.dtype.is_complex:
        raise RuntimeError(f"view_as_real is only supported for complex tensors, got {input.dtype}")
    return _view_as_real_copy(input)


@public(method=False, out=True)
def view_copy(input: Tensor, size: Any = None, *, dtype: Any = None) -> Tensor:
    """`view` with memory of its own."""
    if dtype is not None or not isinstance(size, (int, tuple, list)):
        return _alias_copy(complex_view.view_dtype(input, size if dtype is None else dtype))
    array = input._array
    shape = view.infer_size(view.as_shape((size,)), array.size)
    if array.size and array.ndim and row_strides_of(array.shape, array.strides, shape) is None:
        return view.reshaped(input, shape)  # a copy anyway
    return _view_copy(input, shape)
