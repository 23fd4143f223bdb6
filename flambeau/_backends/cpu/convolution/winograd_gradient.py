"""Plans for the gradient of a kernel of 3x3 by Winograd's method."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...._codegen.images.conv import Layout, channels_innermost_copy
from ...._codegen.images.winograd import APART, POINTS
from ...._codegen.images.winograd_gradient import (
    GradientTiles,
    points_of_gradients,
    points_of_images,
    weights_of_points,
)
from ...._codegen.products.gemm import as_array
from ...._core.geometry.moving_windows import Shape
from ..linalg.gemm import Product, plan
from .images import SLACK, grid

_LEAST_CHANNELS, _LEAST_TILES = 32, 64
"""With fewer the transforms cost more than the products save."""
_ROUND = 1 << 22
"""Elements that are transformed between two products: they should stay in the last cache."""
_SINGLE = np.dtype(np.float32)


class GradientPlan(NamedTuple):
    """A gradient that is ready to be computed, in rounds of images."""

    image_layout: Any
    grad_layout: Any
    image_size: int
    grad_size: int
    image_offsets: Any
    grad_offsets: Any
    table: Any
    product: Product
    rounds: int
    image_round: int
    grad_round: int
    sums: int

    def run(self, out: Any, input: Any, grad: Any, dtype: str) -> bool:
        """Write the gradient of the weight to `out`; False: a sum was not finite, and may be wrong."""
        images = np.empty(self.image_size, _SINGLE)
        grads = np.empty(self.grad_size, _SINGLE)
        channels_innermost_copy(dtype, "float32")(images, input, self.image_layout)
        channels_innermost_copy(dtype, "float32")(grads, grad, self.grad_layout)
        points = np.empty(self.product.sizes.limit, _SINGLE)
        panels = np.empty(self.product.packed_size, _SINGLE)
        sums = np.empty(self.rounds * self.sums, _SINGLE)
        for number in range(self.rounds):
            first = images[number * self.image_round :]
            points_of_images()(points, first, self.image_offsets, self.table)
            points_of_gradients(self.product.tile.rows)(
                panels, grads[number * self.grad_round :], self.grad_offsets, self.table
            )
            self.product.run_packed(sums[number * self.sums :], panels, points, self.product.zeros)
        flag = np.zeros(1, np.int64)
        weights_of_points()(out, sums, self.table, flag)
        return not flag[0]


def fits(computed: str, kernel: Shape, geometry: Any, channels: int, rows: int, batch: int, output: Shape) -> bool:
    """Whether the method applies, and saves time. Channels come in whole vectors and panels."""
    return (
        computed == "float32"
        and kernel == (3, 3)
        and set(geometry.stride + geometry.dilation) == {1}
        and geometry.groups == 1
        and min(channels, rows) >= _LEAST_CHANNELS
        and channels % 8 == rows % 8 == 0
        and batch * (output[0] // 2) * (output[1] // 2) >= _LEAST_TILES
    )


def gradient_plan(
    shape: Shape, steps: Shape, grad_shape: Shape, grad_steps: Shape, padding: Shape, result_steps: Shape
) -> GradientPlan:
    """The plan for images of `shape` and gradients of `grad_shape`, with their steps in five dimensions."""
    batch, channels = shape[:2]
    rows, height, width = grad_shape[1:]
    down, across = -(-height // 2), -(-width // 2)
    count = down * across
    together = max(min(_ROUND // (POINTS * (channels + rows) * count), batch), 1)
    while batch % together:
        together -= 1
    rounds = batch // together
    image_sizes, grad_sizes = (2 * down + 2, 2 * across + 2), (2 * down, 2 * across)
    image_layout = Layout._make((*shape[:2], 1, *shape[2:], *steps, 0, *padding, 1, *image_sizes, 1))
    grad_layout = Layout._make((*grad_shape[:2], 1, height, width, *grad_steps, 0, 0, 0, 1, *grad_sizes, 1))
    image_row, grad_row = image_sizes[1] * channels, grad_sizes[1] * rows
    image_sample, grad_sample = image_sizes[0] * image_row, grad_sizes[0] * grad_row
    images = np.arange(together)
    image_offsets, grad_offsets = (
        grid(images * sample, np.arange(down) * 2 * row, np.arange(across) * 2 * step)
        for sample, row, step in ((image_sample, image_row, channels), (grad_sample, grad_row, rows))
    )
    tiles = together * count
    product = plan(
        "float32",
        rows=rows,
        offsets=np.arange(tiles) * channels,
        left_offsets=np.arange(tiles),  # the rows are packed by the transform
        column_offsets=np.arange(channels),
        places=np.arange(channels),
        out_row=channels,
        left_row=1,
        limit=POINTS * (tiles * channels + APART) + SLACK,
        groups=POINTS,
        out_group=rows * channels,
        source_group=tiles * channels + APART,
    )
    table = GradientTiles(
        tiles=tiles,
        channels=channels,
        rows=rows,
        image_row=image_row,
        grad_row=grad_row,
        depth_block=product.sizes.depth_block,
        depth_blocks=product.sizes.depth_blocks,
        row_step=result_steps[0],
        channel_step=result_steps[1],
        down_step=result_steps[2],
        across_step=result_steps[3],
        parts=rounds,
    )
    return GradientPlan(
        as_array(image_layout),
        as_array(grad_layout),
        batch * image_sample + SLACK,
        batch * grad_sample + SLACK,
        image_offsets,
        grad_offsets,
        as_array(table),
        product,
        rounds,
        together * image_sample,
        together * grad_sample,
        POINTS * rows * channels,
    )
