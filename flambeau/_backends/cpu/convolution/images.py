"""Images as generated convolutions read them: where the elements stand that a kernel meets, in copies and in place."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from ...._codegen.images.conv import Layout, planar_copy
from ...._codegen.products.gemm import as_array
from ...._core.arrays.views import is_row_major
from ...._core.geometry.moving_windows import Geometry, Shape
from ..elementwise.copy import copying
from ..memory.workspace import DIRECT, Workspace
from ..runtime.dtypes import float_name

SLACK = 256
"""Elements beyond an image's copy that may be read, and are not used."""
_SHORT_ROW, _PAIRS = 8, 2
"""Rows of fewer positions are no vector. Images whose windows move by two columns have a quick copy of their own."""
_COLUMNS = 512
"""Small images are taken together until they have so many positions."""


class Space(NamedTuple):
    """The numbers of a convolution in three dimensions, of which the first may be of size 1."""

    sizes: Shape  # of the image
    output: Shape
    kernel: Shape
    stride: Shape
    padding: Shape
    dilation: Shape


def space_of(sizes: Shape, output: Shape, kernel: Shape, geometry: Geometry) -> Space:
    """A convolution of fewer dimensions as one of three."""
    ones, zeros = (1,) * (3 - len(kernel)), (0,) * (3 - len(kernel))
    return Space(
        ones + sizes,
        ones + output,
        ones + kernel,
        ones + geometry.stride,
        zeros + geometry.padding,
        ones + geometry.dilation,
    )


def steps_of(array: Any) -> Shape | None:
    """The strides in elements, of five dimensions; None: they are no multiples of an element."""
    return _steps(array.strides, array.itemsize)


@functools.lru_cache(maxsize=512)
def _steps(strides: Shape, item: int) -> Shape | None:
    if any(step % item for step in strides):
        return None
    batch, channel, *steps = (step // item for step in strides)
    return (batch, channel, *(0,) * (3 - len(steps)), *steps)


def grid(*axes: Any) -> Any:
    """All sums of one number of each axis, the last axis fastest."""
    total = np.zeros(1, np.int64)
    for axis in axes:
        total = (total[:, None] + np.asarray(axis, np.int64)).ravel()
    return total


def positions(sizes: Shape, steps: Shape) -> Any:
    """Where the elements of an array stand, in order."""
    return grid(*[np.arange(size) * step for size, step in zip(sizes, steps, strict=True)])


def taken_together(batch: int, count: int) -> tuple[int, int]:
    """How many images of `count` positions are taken together, and how many times."""
    most = max(_COLUMNS // max(count, 1), 1)
    times = -(-batch // most)
    together = -(-batch // times)
    return together, -(-batch // together)


class Image(NamedTuple):
    """A batch of images as a product reads it: how it is copied, unless it is read in place, and the steps in it."""

    layout: Any
    size: int
    batch_step: int
    channel_step: int
    depth_step: int
    row_step: int

    def read(self, input: Any, computed: str, workspace: Workspace = DIRECT) -> Any:
        """The elements, in the dtype of the sums."""
        if self.layout is None:
            return input
        source = workspace.empty(self.size, np.dtype(computed))
        return workspace.run(planar_copy(float_name(input), computed), source, input, self.layout)


def in_place(shape: Shape, steps: Shape) -> Image:
    """Images (batch, channels, depth, height, width) that need no copy."""
    return Image(None, 1 + sum((size - 1) * step for size, step in zip(shape, steps, strict=True)), *steps[:4])


def planar(shape: Shape, steps: Shape, low: Shape, new_sizes: Shape, phases: int, together: int) -> Image:
    """A planar copy with `low` zeros before the first element; it has room for whole groups of images."""
    width = -(-new_sizes[2] // phases)
    layout = Layout._make((*shape, *steps, *low, *new_sizes[:2], width, phases))
    plane = layout.plane
    room = -(-shape[0] // together) * together * shape[1] * plane
    return Image(as_array(layout), room + SLACK, shape[1] * plane, plane, layout.row * layout.new_height, layout.row)


def windows(shape: Shape, steps: Shape, space: Space, together: int, is_exact: bool) -> tuple[Image, Any]:
    """The image on which a kernel moves, and where its taps are beside the first one."""
    phases = space.stride[2]
    whole = (*shape[:2], *space.sizes)
    if is_exact and not any(space.padding) and phases == 1 and steps[4] == 1 and shape[0] % together == 0:
        image = in_place(whole, steps)
    else:
        reach = tuple(
            (size - 1) * step + (taps - 1) * gap + 1
            for size, step, taps, gap in zip(space.output, space.stride, space.kernel, space.dilation, strict=True)
        )
        image = planar(whole, steps, space.padding, reach, phases, together)
    width = image.row_step // phases
    across = [tap * space.dilation[2] for tap in range(space.kernel[2])]
    taps = grid(
        np.arange(space.kernel[0]) * space.dilation[0] * image.depth_step,
        np.arange(space.kernel[1]) * space.dilation[1] * image.row_step,
        [at % phases * width + at // phases for at in across],
    )
    return image, taps


class Patches(NamedTuple):
    """Images cut into the windows of a convolution that moves by their size, as a product reads them: for each element
    of a window those of all positions of the images that are taken together, one after another.
    """

    together: int
    times: int
    channels: int
    kernel: Shape
    output: Shape

    @property
    def batch_step(self) -> int:
        """Elements from an image to the next."""
        return math.prod(self.output)

    @property
    def channel_step(self) -> int:
        """Elements from a channel to the next."""
        return math.prod(self.kernel) * self.together * self.batch_step

    @property
    def size(self) -> int:
        """How many elements the copy has, with the room behind it."""
        return self.times * self.channels * self.channel_step + SLACK

    def taps(self) -> Any:
        """Where the elements of a window are beside the first one."""
        return np.arange(math.prod(self.kernel)) * self.together * self.batch_step

    def read(self, input: Any, computed: str, workspace: Workspace = DIRECT) -> Any:
        """The elements, in the dtype of the sums."""
        source = workspace.empty(self.size, np.dtype(computed))
        cut = source[: self.size - SLACK].reshape(self.times, self.channels, *self.kernel, self.together, *self.output)
        whole = input.reshape(*input.shape[:2], *(1,) * (5 - input.ndim), *input.shape[2:])
        used = [slice(taps * count) for taps, count in zip(self.kernel, self.output, strict=True)]
        pairs = itertools.chain.from_iterable(zip(self.output, self.kernel, strict=True))
        parts = whole[(..., *used)].reshape(*whole.shape[:2], *pairs).transpose(1, 3, 5, 7, 0, 2, 4, 6)
        copy = copying(input.dtype, source.dtype)
        for time in range(self.times):
            images = parts[:, :, :, :, time * self.together : (time + 1) * self.together]
            workspace.run(copy, cut[time, :, :, :, :, : images.shape[4]], images)
        return source


def cuts(space: Space) -> bool:
    """Whether windows lie side by side, with so few in a row that positions are better brought together."""
    if any(space.padding) or space.kernel != space.stride:
        return False
    if space.output[2] >= _SHORT_ROW or space.stride[2] <= _PAIRS:
        return False
    return all(gap == 1 or taps == 1 for gap, taps in zip(space.dilation, space.kernel, strict=True))


def without_gaps(input: Any, kernel: Shape, output: Shape, geometry: Geometry) -> tuple[Any, Geometry]:
    """A kernel of size 1 that moves in strides looks at some elements only: a view of them, and how it moves there."""
    if max(geometry.stride) == 1:
        return input, geometry
    keys, stride = [], []
    for size, step, pad, wanted in zip(kernel, geometry.stride, geometry.padding, output, strict=True):
        gaps = size == 1 and step > 1 and not pad
        keys.append(slice(0, (wanted - 1) * step + 1, step) if gaps else slice(None))
        stride.append(1 if gaps else step)
    if tuple(stride) == geometry.stride:
        return input, geometry
    return input[(..., *keys)], geometry._replace(stride=tuple(stride))


class Residue(NamedTuple):
    """Along one dimension: the positions `first`, `first + stride`, ... of the image, which meet the same weights."""

    first: int
    number: int
    taps: list[int]
    shifts: list[int]
    """For each tap how far its output position is from the position's number."""


def residues(size: int, taps: int, stride: int, padding: int, dilation: int) -> list[Residue]:
    """The positions of one dimension, by the weights that they meet."""
    found = []
    for first in range(min(stride, size)):
        # Backwards: memory is read in its order then.
        meets = [tap for tap in reversed(range(taps)) if (first + padding - tap * dilation) % stride == 0]
        shifts = [(first + padding - tap * dilation) // stride for tap in meets]
        found.append(Residue(first, -(-(size - first) // stride), meets, shifts))
    return found


def channels_innermost(shape: Shape, steps: Shape, space: Space, images: int) -> tuple[Any, int, Shape]:
    """A copy for so many images: its layout, its size, and the steps of its spatial dimensions."""
    channels = shape[1]
    sizes = tuple(size + 2 * pad for size, pad in zip(space.sizes, space.padding, strict=True))
    row = math.prod(sizes)
    if sizes == space.sizes and is_row_major(sizes, steps[2:], 1):  # one long row is copied quicker than many
        layout = Layout._make((*shape[:2], 1, 1, row, *steps[:2], row, row, 1, 0, 0, 0, 1, 1, row, 1))
    else:
        layout = Layout._make((*shape[:2], *space.sizes, *steps, *space.padding, *sizes, 1))
    return (
        as_array(layout),
        images * row * channels + SLACK,
        (sizes[1] * sizes[2] * channels, sizes[2] * channels, channels),
    )
