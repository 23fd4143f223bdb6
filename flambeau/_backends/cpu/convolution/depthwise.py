"""Depthwise convolutions: the plans for their generated kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...._codegen.images.conv_depthwise import ROWS, Depthwise, depthwise, depthwise_weights
from ...._codegen.images.conv_taps import TapSums, depthwise_tap_sums
from ...._codegen.products.gemm import Tile, as_array, tile_for
from ...._core.geometry.moving_windows import Shape
from ..elementwise.copy import copy_into
from ..memory.workspace import Workspace
from .images import Image, Space, planar


class Planes(NamedTuple):
    """A depthwise convolution that is ready to run, or the gradient of its weight."""

    dtype: str
    table: Any
    offsets: Any
    order: Any
    """The weights of a channel in the order of the offsets."""
    tile: Tile

    def run(self, out: Any, weight: Any, source: Any, bias: Any) -> bool:
        """Write the convolution of `source` to `out`, which is contiguous: it succeeds."""
        weights = weight.reshape(len(weight), -1)[:, self.order]
        starts = np.zeros(len(weights), self.dtype) if bias is None else np.ascontiguousarray(bias, self.dtype)
        kernel = depthwise(self.dtype, tuple(self.tile))
        kernel(out, source, np.ascontiguousarray(weights, self.dtype), starts, self.offsets, self.table)
        return True

    def run_weights(self, out: Any, grad: Any, source: Any, workspace: Workspace) -> None:
        """Write the gradient of the weight to `out`; both it and `grad` are contiguous."""
        kernel = depthwise_weights(self.dtype, tuple(self.tile))
        workspace.run(kernel, out, source, grad, self.offsets, self.table)


class NarrowPlanes(NamedTuple):
    """A depthwise convolution whose rows fill no vector: all rows of a plane are computed as one.

    Between two rows are sums of what lies around the end of one and the beginning of the next. They are left out when
    the others are copied to the result.
    """

    lines: Planes
    sizes: tuple[int, int, int]
    """Rows of a result, elements from one to the next, and their width."""

    def run(self, out: Any, weight: Any, source: Any, bias: Any) -> bool:
        """Write the convolution of `source` to `out`, which is contiguous: it succeeds."""
        height, row, width = self.sizes
        lines = np.empty((*out.shape[:2], height, row), out.dtype)
        self.lines.run(lines, weight, source, bias)
        rows, target = lines[..., :width], out.reshape(*out.shape[:2], height, width)
        if not copy_into(target, rows):
            target[...] = rows
        return True


def fits(dtype: str, inputs: int, outputs: int, sizes: Shape, row: int) -> bool:
    """Whether the kernels apply to groups of so many channels and results of spatial `sizes`.

    A row, or a plane whose rows begin after `row` elements each, is at least one vector.
    """
    depth, height, width = sizes
    reach = width if depth > 1 else max(width, (height - 1) * row + width)
    return inputs == outputs == 1 and reach >= tile_for(dtype, 1).lanes


def convolving(
    dtype: str,
    batch: int,
    channels: int,
    image: Image,
    sizes: Shape,
    moves: Shape,
    offsets: Any,
    order: Any,
    chained: bool,
) -> Planes | NarrowPlanes:
    """A depthwise convolution to a contiguous result of spatial `sizes`, that moves by `moves` of the image's rows.

    `chained`: each element is one chain of fused multiplications and additions, for any processor.
    """
    depth, height, width = sizes
    row, lanes = moves[1] * image.row_step, tile_for(dtype, 1).lanes
    if width >= lanes or depth > 1:
        return planes(dtype, batch, channels, image, sizes, moves, offsets, order, chained)
    reach = (height - 1) * row + width
    # The kernel computes `ROWS` rows at a time. These overlap: nothing behind the image is read.
    step = min(reach // ROWS, (reach - lanes) // (ROWS - 1))
    plane = Depthwise(
        batch=batch,
        channels=channels,
        taps=len(offsets),
        depth=1,
        height=ROWS,
        width=reach - (ROWS - 1) * step,
        source_batch=image.batch_step,
        source_plane=image.channel_step,
        source_depth=0,
        source_row=step,
        out_batch=channels * height * row,
        out_plane=height * row,
        out_depth=0,
        out_row=step,
    )
    lines = Planes(dtype, as_array(plane), np.ascontiguousarray(offsets), np.asarray(order), _tile(dtype, chained))
    return NarrowPlanes(lines, (height, row, width))


def _tile(dtype: str, chained: bool) -> Tile:
    tile = tile_for(dtype, 1)
    return tile._replace(fused=True) if chained else tile


def planes(
    dtype: str,
    batch: int,
    channels: int,
    image: Image,
    sizes: Shape,
    moves: Shape,
    offsets: Any,
    order: Any,
    chained: bool,
) -> Planes:
    """`convolving` with wide rows, and the gradient of its weight with any."""
    depth, height, width = sizes
    table = Depthwise(
        batch=batch,
        channels=channels,
        taps=len(offsets),
        depth=depth,
        height=height,
        width=width,
        source_batch=image.batch_step,
        source_plane=image.channel_step,
        source_depth=moves[0] * image.depth_step,
        source_row=moves[1] * image.row_step,
        out_batch=channels * depth * height * width,
        out_plane=depth * height * width,
        out_depth=height * width,
        out_row=width,
    )
    return Planes(dtype, as_array(table), np.ascontiguousarray(offsets), np.asarray(order), _tile(dtype, chained))


_LANES = (4, 8, 16)
"""A vector holds a row of a window that is no wider."""
_MOST_ROWS = 16


class TapPlan(NamedTuple):
    """The gradient of a depthwise convolution's weight that is ready to run, with vectors of taps."""

    dtype: str
    table: Any
    window: tuple[int, int, int]
    """Rows and columns of a window, and lanes of a vector."""
    chained: bool

    def run_weights(self, out: Any, grad: Any, source: Any, workspace: Workspace) -> None:
        """Write the gradient of the weight to `out`; both it and `grad` are contiguous."""
        kernel = depthwise_tap_sums(
            self.dtype, *self.window, self.chained or tile_for(self.dtype, 1).fused, self.chained
        )
        workspace.run(kernel, out, source, grad, self.table)


def rows_are_vectors(space: Space) -> bool:
    """Whether rows of a window are vectors of neighbours, and few enough that all their sums stay in registers."""
    depth, height, width = space.kernel
    return depth == space.output[0] == 1 and 1 < width <= _LANES[-1] and height <= _MOST_ROWS and space.dilation[2] == 1


def tap_sums(dtype: str, shape: Shape, steps: Shape, space: Space, chained: bool) -> tuple[Image, TapPlan]:
    """The padded images of a depthwise convolution, and the gradient of its weight.

    `chained`: each sum is one chain of fused multiplications and additions over all images, for any processor.
    """
    reach = tuple(
        (size - 1) * step + (count - 1) * gap + 1
        for size, step, count, gap in zip(space.output, space.stride, space.kernel, space.dilation, strict=True)
    )
    image = planar((*shape[:2], *space.sizes), steps, space.padding, reach, 1, 1)
    table = TapSums(
        batch=shape[0],
        channels=shape[1],
        height=space.output[1],
        width=space.output[2],
        source_batch=image.batch_step,
        source_plane=image.channel_step,
        source_row=space.dilation[1] * image.row_step,
        move_down=space.stride[1] * image.row_step,
        move_across=space.stride[2],
    )
    rows, columns = space.kernel[1:]
    lanes = next(each for each in _LANES if columns <= each)
    return image, TapPlan(dtype, as_array(table), (rows, columns, lanes), chained)
