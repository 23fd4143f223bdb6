"""Plans for convolutions with kernels of 3x3 by Winograd's method."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...._codegen.images.winograd import APART, POINTS, Winograd, winograd, winograd_weights
from ...._codegen.products.gemm import Tile, as_array, tile_for
from ...._core.geometry.moving_windows import Shape
from ..linalg.gemm import wanted_units
from ..runtime.dtypes import float_name
from .images import Image, grid, planar, taken_together

_LEAST_CHANNELS = 16
"""With fewer channels the transforms cost more than the products save."""
_LEAST_TILES = 24
_PANEL_ELEMENTS = 110_000
"""Elements of the transformed image that one thread works on at a time: they should stay in its second cache."""


class Tiles(NamedTuple):
    """A convolution by tiles that is ready to run."""

    table: Any
    tile: Tile
    offsets: Any
    places: Any
    parts: Any
    neighbours: Any
    zeros: Any
    weights_size: int

    def run(self, out: Any, weight: Any, source: Any, bias: Any) -> bool:
        """Write the convolution of `source` to `out`; False: a result was not finite, and may be wrong."""
        weights = np.empty(self.weights_size, np.dtype(np.float32))
        winograd_weights(float_name(weight), self.tile.rows)(weights, weight, self.table)
        starts = self.zeros if bias is None else np.ascontiguousarray(bias, np.float32)
        flag = np.zeros(1, np.int64)
        winograd(tuple(self.tile))(
            out,
            source,
            weights,
            starts,
            self.offsets,
            self.places,
            self.parts,
            self.neighbours,
            self.table,
            flag,
        )
        return not flag[0]


def fits(computed: str, kernel: Shape, geometry: Any, channels: int, rows: int, batch: int, output: Shape) -> bool:
    """Whether the method applies, and saves time."""
    return (
        computed == "float32"
        and kernel == (3, 3)
        and set(geometry.stride + geometry.dilation) == {1}
        and geometry.groups == 1
        and min(channels, rows) >= _LEAST_CHANNELS
        and batch * (output[0] // 2) * (output[1] // 2) >= _LEAST_TILES
    )


def tiles(
    shape: Shape,
    steps: Shape,
    output: Shape,
    padding: Shape,
    result_steps: Shape,
    rows: int,
    weight_start: int,
    weight_steps: Shape,
) -> tuple[Image, Tiles]:
    """The plan for images of `shape` and `steps`; `weight_steps` are those of rows, channels, and of the kernel."""
    batch, channels = shape[:2]
    height, width = output
    down, across = -(-height // 2), -(-width // 2)
    count = down * across
    together, times = taken_together(batch, count)
    low, reach = (0, *padding), (1, 2 * down + 2, 2 * across + 2)
    image = planar((batch, channels, 1, *shape[2:]), steps, low, reach, 2, together)
    tile = tile_for("float32", 8)
    images = np.arange(together)
    rows_of_tiles, columns_of_tiles = np.arange(down), np.arange(across)
    offsets = grid(images * image.batch_step, rows_of_tiles * 2 * image.row_step, columns_of_tiles)
    places = grid(images * result_steps[0], rows_of_tiles * 2 * result_steps[2], columns_of_tiles * 2 * result_steps[3])
    inside = grid(images * 0, 2 * (rows_of_tiles * 2 + 1 < height), columns_of_tiles * 2 + 1 < width)
    missing = -len(offsets) % tile.columns
    offsets, places, inside = (np.pad(each, (0, missing), "edge") for each in (offsets, places, inside))
    fours = offsets.reshape(-1, 4)
    neighbours = (np.diff(fours) == 1).all(1) & (inside.reshape(-1, 4) & 1).all(1)
    panels = len(offsets) // tile.columns
    per_unit = max(min(_PANEL_ELEMENTS // (POINTS * channels * tile.columns), -(-panels * times // wanted_units())), 1)
    blocks = -(-panels // per_unit)
    row_tiles = -(-rows // tile.rows)
    sizes = Winograd(
        units=blocks * times,
        batches=times,
        blocks=blocks,
        panels_per_unit=-(-panels // blocks),
        tiles=together * count,
        last_tiles=(batch - (times - 1) * together) * count,
        channels=channels,
        rows=rows,
        row_tiles=row_tiles,
        source_batch=together * image.batch_step,
        source_channel=image.channel_step,
        source_row=image.row_step,
        source_phase=image.row_step // 2,
        out_batch=together * result_steps[0],
        out_channel=result_steps[1],
        out_row=result_steps[2],
        weight_start=weight_start,
        weight_row=weight_steps[0],
        weight_channel=weight_steps[1],
        weight_down=weight_steps[2],
        weight_across=weight_steps[3],
    )
    return image, Tiles(
        as_array(sizes),
        tile,
        offsets,
        places,
        np.ascontiguousarray(inside, np.int64),
        np.ascontiguousarray(neighbours, np.int64),
        np.zeros(row_tiles * tile.rows, np.float32),
        POINTS * (row_tiles * channels * tile.rows + APART),
    )
