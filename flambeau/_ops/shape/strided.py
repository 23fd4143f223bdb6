"""Views with any strides: `as_strided`, and how gradients go back through it."""

from __future__ import annotations

from typing import Any

from ..._core.geometry.strided_windows import Geometry, move_between, span, window
from ..._core.storage import address_of, owner_of
from ..._core.tensor import Tensor
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.registry import public
from .view import as_shape


def _restride_back(grad: Tensor, source: Geometry, target: Geometry, shared: Geometry | None) -> Tensor:
    return _restride(grad, target, source, shared)


@primitive("AsStridedBackwardBackward0", self=_restride_back)
def _restride(self: Array, source: Geometry, target: Geometry, shared: Geometry | None) -> Array:
    """Add up the elements of `self` where the geometry `source` puts them in a buffer, and read it as `target`.

    An element of the buffer that `shared` names n times counts an n-th. The derivative is the way back.
    """
    return move_between(self, source, target, shared)


def own_and_part(sizes: Any, strides: Any, offset: int, size: Any, stride: Any, start: int | None) -> Any:
    """The geometries of a tensor and of a strided window of it, which begins where that does unless told."""
    return (sizes, strides, offset), (size, stride, offset if start is None else start)


def _as_strided_gradient(
    grad: Tensor,
    self_sym_sizes: Any,
    self_sym_strides: Any,
    self_offset: int,
    size: Any,
    stride: Any,
    storage_offset: Any,
) -> Tensor:
    """The gradient of a strided window in the geometry of its base."""
    own, part = own_and_part(self_sym_sizes, self_sym_strides, self_offset, size, stride, storage_offset)
    return _restride(grad, part, own, own)


@primitive("AsStridedBackward0", view=True, self=_as_strided_gradient)
def _as_strided(self: Array, size: tuple[int, ...], stride: tuple[int, ...], storage_offset: int | None) -> Array:
    item = self.itemsize
    owner = owner_of(self)
    start = address_of(self) - address_of(owner) if storage_offset is None else storage_offset * item
    return window(owner, self.dtype, size, tuple([step * item for step in stride]), start)


def _as_strided_tangent(tangent: Tensor, result: Tensor, self: Tensor, *window: Any) -> Tensor:
    """The window on a memory in which the tangent has the place that `self` has in its own.

    The op looks beyond `self`; nothing there depends on it.
    """
    geometry = (self.shape, self.stride(), self.storage_offset())
    elements = self.untyped_storage().nbytes() // self.element_size()
    if geometry != (tangent.shape, tangent.stride(), tangent.storage_offset()) or (
        tangent.untyped_storage().nbytes() // tangent.element_size() < elements
    ):
        tangent = tangent.new_zeros(elements).as_strided_scatter(tangent, *geometry).as_strided(*geometry)
    return _as_strided(tangent, *window)


_as_strided.tangent = _as_strided_tangent


def strided_arguments(input: Tensor, size: Any, stride: Any, storage_offset: int | None) -> tuple[Any, Any, int | None]:
    """The arguments of `as_strided`, checked."""
    for position, (word, each) in enumerate((("size", size), ("stride", stride)), 2):
        if not isinstance(each, (tuple, list)):
            raise TypeError(
                f"as_strided(): argument '{word}' (position {position}) must be tuple of ints, not "
                f"{type(each).__name__}"
            )
    size, stride = as_shape((size,)), as_shape((stride,))
    if len(size) != len(stride):
        raise RuntimeError(f"mismatch in length of strides and shape: sizes {list(size)}, strides {list(stride)}")
    if min(size, default=0) < 0:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    if min(stride, default=0) < 0:
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if storage_offset is not None and storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")
    if 0 not in size and not input._kind.dataless:
        offset, item = input.storage_offset() if storage_offset is None else storage_offset, input.itemsize
        needed, available = (offset + span(size, stride, 1)) * item, owner_of(input._array).nbytes
        if needed > available:
            raise RuntimeError(
                f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {item} "
                f"requiring a storage size of {needed} are out of bounds for storage of size {available}"
            )
    return size, stride, storage_offset


def as_strided_op() -> Any:
    """The op itself, for nodes of it that are made beside a call."""
    return _as_strided


@public()
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the storage under `input` with any size, strides and offset, in elements."""
    return _as_strided(input, *strided_arguments(input, size, stride, storage_offset))
