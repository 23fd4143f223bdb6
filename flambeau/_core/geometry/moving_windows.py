"""Windows that move over the last dimensions of arrays, of convolutions and of pooling: where they lie, how many fit.

Arrays are (batch, channels, *sizes), weights (outputs, inputs of one group, *kernel).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ..backend import backend_of_array
from ..size import contiguous_strides
from .layout import empty_array, is_channels_last, ordered_strides

Shape = tuple[int, ...]


class Geometry(NamedTuple):
    """How a kernel moves over its input: a number for each spatial dimension, and the groups of channels."""

    stride: Shape
    padding: Shape
    dilation: Shape
    groups: int


def extent(kernel: Shape, dilation: Shape) -> Shape:
    """The sizes that a dilated kernel covers."""
    return tuple([step * (size - 1) + 1 for size, step in zip(kernel, dilation, strict=True)])


@functools.lru_cache(maxsize=256)
def correlated_sizes(sizes: Shape, kernel: Shape, geometry: Geometry) -> Shape:
    """The spatial sizes of a convolution's result."""
    reach = extent(kernel, geometry.dilation)
    padded = padded_sizes(sizes, geometry)
    return tuple([(size - r) // s + 1 for size, r, s in zip(padded, reach, geometry.stride, strict=True)])


def transposed_sizes(sizes: Shape, kernel: Shape, geometry: Geometry, output_padding: Shape) -> Shape:
    """The spatial sizes of a transposed convolution's result."""
    reach = extent(kernel, geometry.dilation)
    entries = zip(sizes, reach, geometry.stride, geometry.padding, output_padding, strict=True)
    return tuple([(size - 1) * s - 2 * p + r + more for size, r, s, p, more in entries])


def padded_sizes(sizes: Shape, geometry: Geometry) -> Shape:
    """The spatial sizes of an input with its padding."""
    return tuple([size + 2 * p for size, p in zip(sizes, geometry.padding, strict=True)])


def new_array(shape: Shape, array_type: Any, last: bool, source: Any) -> Any:
    """Uninitialised memory beside `source`, with the channels innermost if `last`."""
    if not last:
        return np.empty(shape, array_type, like=source)
    return empty_array(shape, strides_for(shape, last), array_type, backend_of_array(source))


def strides_for(shape: Shape, last: bool) -> Shape:
    """The strides of a contiguous tensor, or of one with its channels innermost."""
    return ordered_strides(shape, (0, *range(2, len(shape)), 1)) if last else contiguous_strides(shape)


def suggests_channels_last(array: Any) -> bool:
    """Whether the strides are those of a tensor with its channels innermost; where sizes of 1 leave it open, they are
    not.
    """
    steps, sizes = array.strides, array.shape
    if steps[1] == 0 or steps[-1] < steps[1] * max(sizes[1], 1):
        return False
    least = 0
    for dim in (1, *range(array.ndim - 1, 1, -1), 0):
        if steps[dim] < least or (dim == 0 and least == steps[1]):
            return False
        least = steps[dim] * max(sizes[dim], 1)
    return True


def gives_channels_last(input: Any, weight: Any) -> bool:
    """Whether a convolution's results have their channels innermost: where an operand does, for images, and for volumes
    in float32.
    """
    if input.ndim < 4:
        return False
    if input.ndim == 5 and (input.dtype != np.float32 or set(weight.shape[2:]) == {1}):
        return False
    return suggests_channels_last(input) or suggests_channels_last(weight)


# ----- pooling --------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def output_sizes(
    spatial: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool
) -> Shape:
    """How many windows fit along each dimension; `ceil_mode` counts a last one that begins inside and ends outside."""
    found = []
    for size, length, step, pad, spread in zip(spatial, kernel, stride, padding, dilation, strict=True):
        room = size + 2 * pad - spread * (length - 1) - 1
        count = -(-room // step) + 1 if ceil_mode else room // step + 1
        if ceil_mode and (count - 1) * step >= size + pad:
            count -= 1
        found.append(count)
    return tuple(found)


def channel_last(array: Any, rank: int) -> bool:
    """Whether a batch of planes of `rank` dimensions has the channel innermost, so that results have too."""
    return not array.flags.c_contiguous and array.ndim == rank + 2 and is_channels_last(array)
