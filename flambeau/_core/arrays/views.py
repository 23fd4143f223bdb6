"""Views as arithmetic: the shape, strides and distance of a window, from those of the array that it is a window on.

The rules are NumPy's. Strides count bytes; so does the distance between the first elements of the array and the view.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from ..size import contiguous_byte_strides

Shape = tuple[int, ...]
Geometry = tuple[Shape, Shape, int]
"""Shape, strides, and the distance from the beginning of the array that it is a view of."""


def indexed(shape: Shape, strides: Shape, index: tuple[Any, ...]) -> Geometry:
    """The view that an index of integers, slices, None and one ellipsis selects."""
    taken = len([each for each in index if each is not None and each is not Ellipsis])
    if taken > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {taken} were indexed")
    sizes: list[int] = []
    steps: list[int] = []
    distance = dim = 0
    open_ = True
    for each in index:
        if each is None:
            sizes.append(1)
            steps.append(0)
        elif each is Ellipsis:
            if not open_:
                raise IndexError("an index can only have a single ellipsis ('...')")
            open_, end = False, dim + len(shape) - taken
            sizes += shape[dim:end]
            steps += strides[dim:end]
            dim = end
        elif type(each) is slice:
            start, stop, step = each.indices(shape[dim])
            sizes.append(len(range(start, stop, step)))
            steps.append(strides[dim] * step)
            distance += start * strides[dim]
            dim += 1
        else:
            distance += _position(each, shape[dim], dim) * strides[dim]
            dim += 1
    return (*sizes, *shape[dim:]), (*steps, *strides[dim:]), distance


def _position(index: Any, size: int, dim: int) -> int:
    position = operator.index(index)
    if not -size <= position < size:
        raise IndexError(f"index {position} is out of bounds for axis {dim} with size {size}")
    return position % size


def permutation(axes: tuple[Any, ...], ndim: int) -> tuple[int, ...]:
    """The order of dimensions that the arguments of `transpose` ask for."""
    given = axes[0] if len(axes) == 1 and not hasattr(axes[0], "__index__") else axes
    if given is None or not axes:
        return tuple(range(ndim))[::-1]
    order = tuple([axis(each, ndim) for each in given])
    if len(order) != ndim:
        raise ValueError("axes don't match array")
    if len(set(order)) != ndim:
        raise ValueError("repeated axis in transpose")
    return order


def axis(number: Any, ndim: int) -> int:
    """A dimension counted from the first one."""
    found = operator.index(number)
    if not -ndim <= found < ndim:
        raise np.exceptions.AxisError(found, ndim)
    return found % ndim


def diagonal(shape: Shape, strides: Shape, offset: int, first: int, second: int) -> Geometry:
    """The diagonal of two dimensions, which becomes the last one."""
    ndim = len(shape)
    one, other = axis(first, ndim), axis(second, ndim)
    if one == other:
        raise ValueError("axis1 and axis2 cannot be the same")
    rows, columns = shape[one], shape[other]
    distance = offset * strides[other] if offset >= 0 else -offset * strides[one]
    size = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    kept = [dim for dim in range(ndim) if dim not in (one, other)]
    sizes, steps = [shape[dim] for dim in kept], [strides[dim] for dim in kept]
    return (*sizes, size), (*steps, strides[one] + strides[other]), distance if size else 0


def retyped(shape: Shape, strides: Shape, item: int, new_item: int) -> Geometry:
    """The shape and strides of an array whose bytes are read as elements of another size."""
    if item == new_item:
        return shape, strides, 0
    if not shape:
        raise ValueError("Changing the dtype of a 0d array is only supported if the itemsize is unchanged")
    if strides[-1] != item and shape[-1] != 1 and 0 not in shape:
        raise ValueError("To change to a dtype of a different size, the last axis must be contiguous")
    size, rest = divmod(shape[-1] * item, new_item)
    if rest:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last axis "
            "of the array."
        )
    return (*shape[:-1], size), (*strides[:-1], new_item), 0


def reshaped(shape: Shape, strides: Shape, item: int, wanted: Shape) -> Shape | None:
    """The strides of a view, in row-major order, of the shape `wanted`; None: there is no such view."""
    if is_row_major(shape, strides, item):
        return contiguous_byte_strides(wanted, item)
    return row_strides_of(shape, strides, wanted)


def sizes_of(shape: Any, size: int) -> Shape:
    """The shape that `reshape` is asked for, with its -1 worked out from the number of elements."""
    wanted = tuple([operator.index(each) for each in ((shape,) if hasattr(shape, "__index__") else shape)])
    unknown = [dim for dim, each in enumerate(wanted) if each < 0]
    if unknown:
        known = math.prod([each for each in wanted if each >= 0])
        if len(unknown) > 1 or wanted[unknown[0]] != -1:
            raise ValueError("can only specify one unknown dimension")
        rest = size // known if known else 0
        wanted = tuple([rest if each < 0 else each for each in wanted])
    if math.prod(wanted) != size:
        raise ValueError(f"cannot reshape array of size {size} into shape {wanted}")
    return wanted


@functools.lru_cache(maxsize=1024)
def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape to which all broadcast, with any number of elements: NumPy stops at those that it can count."""
    found = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        for dim, size in enumerate(shape, len(found) - len(shape)):
            if size != 1 and found[dim] != size:
                if found[dim] != 1:
                    raise ValueError(f"shape mismatch: objects cannot be broadcast to a single shape: {shapes}")
                found[dim] = size
    return tuple(found)


@functools.lru_cache(maxsize=1024)
def is_row_major(shape: Shape, strides: Shape, item: int) -> bool:
    """Whether elements follow each other row by row without gaps; what a dimension of one element steps is the same."""
    for size, step in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size != 1:
            if step != item:
                return 0 in shape
            item *= size
    return True


@functools.lru_cache(maxsize=1024)
def row_strides_of(shape: Shape, strides: Shape, wanted: Shape) -> Shape | None:
    """The strides with which memory of this geometry has the shape `wanted`, or None if no strides do that.

    Dimensions that are contiguous with their neighbours form one chunk; each chunk must be filled by whole dimensions.
    """
    result = [0] * len(wanted)
    place = len(wanted) - 1
    chunk_step = strides[-1] if strides else 1
    available, filled = 1, 1
    for dim in range(len(shape) - 1, -1, -1):
        available *= shape[dim]
        if dim and (shape[dim - 1] == 1 or strides[dim - 1] == available * chunk_step):
            continue
        while place >= 0 and (filled < available or wanted[place] == 1):
            result[place] = filled * chunk_step
            filled *= wanted[place]
            place -= 1
        if filled != available:
            return None
        if dim:
            chunk_step = strides[dim - 1]
            available = filled = 1
    return tuple(result) if place < 0 else None
