"""Strides: which ones a new tensor gets, and what the memory formats mean."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

from ..backend import Backend, backend_of, backend_of_array
from ..device import channels_last, channels_last_3d, contiguous_format, memory_format, preserve_format
from ..size import contiguous_byte_strides, contiguous_strides

Shape = tuple[int, ...]
Geometry = tuple[Shape, Shape, int]
"""Sizes, strides in bytes, and bytes of an element."""

_HOST = backend_of("cpu")

_CHANNELS_LAST = {channels_last: (4, (0, 2, 3, 1)), channels_last_3d: (5, (0, 2, 3, 4, 1))}
"""The rank that each format is for, and the order of its dimensions from the outermost to the innermost."""


def ordered_strides(shape: Shape, order: tuple[int, ...]) -> Shape:
    """Strides of a dense tensor whose dimensions lie in memory in this order, from the outermost to the innermost."""
    strides = [0] * len(shape)
    step = 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def channels_last_strides(shape: Shape, wanted: memory_format) -> Shape:
    """Strides of the formats in which the channel is the innermost dimension."""
    rank, order = _CHANNELS_LAST[wanted]
    if len(shape) != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {wanted.name} format, but the shape is {list(shape)}")
    return ordered_strides(shape, order)


def is_dense(shape: Shape, strides: Shape) -> bool:
    """Whether each element has a memory location of its own, with no gaps between them. Strides in elements."""
    expected = 1
    for step, size in sorted((step, size) for step, size in zip(strides, shape, strict=True) if size != 1):
        if size == 0:
            return True
        if step != expected:
            return False
        expected *= size
    return True


def joint_dimensions(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """As few dimensions as reach the same elements of arrays of one shape, in order, and each array's strides there."""
    sizes: list[int] = []
    joint: list[list[int]] = [[] for _ in strides]
    for dim, size in enumerate(shape):
        if size == 1:
            continue
        if sizes and all(own[-1] == each[dim] * size for own, each in zip(joint, strides, strict=True)):
            sizes[-1] *= size
            for own, each in zip(joint, strides, strict=True):
                own[-1] = each[dim]
        else:
            sizes.append(size)
            for own, each in zip(joint, strides, strict=True):
                own.append(each[dim])
    return sizes, joint


@functools.lru_cache(maxsize=1024)
def preserved_strides(shape: Shape, strides: Shape) -> Shape:
    """The strides of a copy: the same if they are dense, else dense ones with the dimensions in the same order."""
    return strides if is_dense(shape, strides) else _strides_by_order(shape, [strides])


def _strides_by_order(shape: Shape, operands: Sequence[Shape]) -> Shape:
    """Dense strides with the dimensions in the order of the operands': where these disagree the first one decides."""
    order = list(range(len(shape)))[::-1]  # from the innermost outwards
    for start in range(1, len(order)):
        place = start
        for before in range(start - 1, -1, -1):
            decision = _compared(shape, operands, order[before], order[place])
            if decision > 0:
                order[before], order[place] = order[place], order[before]
                place = before
            elif decision < 0:
                break
    return ordered_strides(shape, tuple(reversed(order)))


def _compared(shape: Shape, operands: Sequence[Shape], inner: int, outer: int) -> int:
    """Whether two dimensions should change places (1), must not (-1), or may stand either way (0)."""
    for strides in operands:
        if strides[inner] == 0 or strides[outer] == 0:
            continue  # an expanded dimension may stand anywhere
        if (strides[inner], shape[inner]) > (strides[outer], shape[outer]):
            return 1
        if strides[inner] < strides[outer]:
            return -1
    return 0


def arranged(result: Any, *operands: Any) -> Any:
    """The result of an elementwise function of arrays, in the memory order that PyTorch gives it.

    NumPy prefers the row-major order where operands disagree; PyTorch follows the first that has an opinion.
    """
    first = operands[0]
    own = first.strides
    if own == result.strides and own == operands[-1].strides and len(operands) == 2:
        return result
    if len(operands) == 2 and not any(first.strides) and result.strides == operands[1].strides:
        return result  # the first is one element, repeated: it has no opinion
    shape = result.shape
    if result.size == 0:
        return result
    if first.flags.c_contiguous and all([each.flags.c_contiguous for each in operands]):  # noqa: C419 (few, quicker)
        return result
    if (
        first.shape == shape
    ):  # the usual cases, quickly: strides are taken over, a matrix is turned, a part is row-major
        if first.strides == result.strides and 0 not in first.strides:
            return result
        if first.flags.f_contiguous:
            return result if result.flags.f_contiguous else result.copy("F")
        if result.flags.c_contiguous and _is_row_major(first.strides):
            return result
    geometries = tuple([(each.shape, each.strides, each.itemsize) for each in (result, *operands)])
    strides = _other_strides(*geometries)
    if strides is None:
        return result
    copy = empty_array(shape, strides, result.dtype, backend_of_array(result))
    copy[...] = result
    return copy


@functools.lru_cache(maxsize=1024)
def _other_strides(result: Geometry, *operands: Geometry) -> Shape | None:
    """The strides, in elements, that a result is to have by its operands; None: those that it has."""
    shape, present, item = result
    strides = _joint_strides(shape, *operands)
    fits = (size == 1 or step * item == now for size, step, now in zip(shape, strides, present, strict=True))
    return None if all(fits) else strides


def arranged_strides(shape: Shape, *operands: Any) -> Shape:
    """The strides, in elements, of what `arranged` gives for a result of `shape`."""
    if 0 in shape or all(each.flags.c_contiguous for each in operands):
        return contiguous_strides(shape)
    return _joint_strides(shape, *[(each.shape, each.strides, each.itemsize) for each in operands])


@functools.lru_cache(maxsize=1024)
def _joint_strides(shape: Shape, *operands: Geometry) -> Shape:
    return _strides_by_order(shape, [_broadcast_strides(*each, shape) for each in operands])


@functools.lru_cache(maxsize=1024)
def _is_row_major(strides: Shape) -> bool:
    return 0 not in strides and all(outer > inner for outer, inner in itertools.pairwise(strides))


def _broadcast_strides(given: Shape, strides: Shape, item: int, shape: Shape) -> Shape:
    missing = len(shape) - len(given)
    own = zip(given, strides, shape[missing:], strict=True)
    return (*[0] * missing, *[0 if size == 1 and full != 1 else step // item for size, step, full in own])


def element_strides(array: Any) -> Shape:
    """The strides of `array` counted in elements."""
    item = array.itemsize
    return tuple([step // item for step in array.strides])


def strides_like(array: Any, wanted: memory_format | None) -> Shape:
    """The strides, in elements, of a tensor like `array` in a memory format; None is `preserve_format`."""
    if wanted is None or wanted is preserve_format:
        return preserved_strides(array.shape, element_strides(array))
    if wanted is contiguous_format:
        return contiguous_strides(array.shape)
    return channels_last_strides(array.shape, wanted)


def empty_array(shape: Shape, strides: Shape, array_type: Any, backend: Backend = _HOST) -> Any:
    """Uninitialised memory seen with these strides (in elements), which may have gaps or overlap."""
    item = array_type.itemsize
    extent = 0 if 0 in shape else 1 + sum([(size - 1) * step for size, step in zip(shape, strides, strict=True)])
    steps = tuple([step * item for step in strides])
    return backend.window(backend.empty((extent,), array_type), shape, array_type, 0, steps)


def empty_like(array: Any, wanted: memory_format | None, array_type: Any) -> Any:
    """Memory for a copy of `array`, whose strides follow from its own and from a memory format."""
    if wanted is None and is_plain(array):
        return backend_of_array(array).empty(array.shape, array_type)
    return empty_array(array.shape, strides_like(array, wanted), array_type, backend_of_array(array))


def contiguous_array(array: Any) -> Any:
    """`array` itself if its elements lie one after the other, else a copy where they do."""
    return array if array.flags.c_contiguous else array.copy("C")


def is_plain(array: Any) -> bool:
    """Whether NumPy's own row-major copy has the strides that PyTorch's would have."""
    if not array.flags.c_contiguous or not array.size:
        return False
    # A dimension of size 1 may have any stride, which PyTorch keeps, and NumPy does not.
    return 1 not in array.shape or array.strides == contiguous_byte_strides(array.shape, array.itemsize)


def has_format(array: Any, wanted: memory_format) -> bool:
    """Whether the elements lie in memory in the order of this format."""
    if wanted is contiguous_format:
        return bool(array.flags.c_contiguous)
    if not isinstance(wanted, memory_format):
        raise TypeError(f"argument 'memory_format' must be torch.memory_format, not {type(wanted).__name__}")
    if wanted is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    rank, order = _CHANNELS_LAST[wanted]
    return array.ndim == rank and bool(array.transpose(order).flags.c_contiguous)


def is_channels_last(array: Any) -> bool:
    """Whether the strides say that the channel (dimension 1) is innermost, as PyTorch reads them."""
    if array.ndim not in (4, 5) or array.flags.c_contiguous:
        return False
    return channels_innermost(array.shape, array.strides)


def channels_innermost(shape: Shape, strides: Shape) -> bool:
    """Whether the channel is innermost by these sizes and strides, which may be row-major at once."""
    if strides[1] == 0:
        return False
    least = 0
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        step, size = strides[dim], shape[dim]
        if size == 0 or step < least or (dim == 0 and least == strides[1]):
            return False
        least = step * size
    return True


def in_format_of(result: Any, source: Any) -> Any:
    """`result` with channels last in memory if `source` has them so, else row by row."""
    if result.flags.c_contiguous and source.flags.c_contiguous:
        return result
    for wanted in (channels_last, channels_last_3d):
        if not source.flags.c_contiguous and has_format(source, wanted):
            if has_format(result, wanted):
                return result
            turned = empty_array(
                result.shape, channels_last_strides(result.shape, wanted), result.dtype, backend_of_array(result)
            )
            turned[...] = result
            return turned
    return contiguous_array(result)
