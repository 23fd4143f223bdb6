"""The gradient of a 3x3 kernel by Winograd's method: the transpose of `winograd.py`.

Image and gradient of the result are transformed tile by tile; the products of matrices sum over tiles; what they give
is transformed back to 3x3 numbers. Both lie with the channels innermost here: a vector holds neighbouring channels.
"""

from __future__ import annotations

from typing import NamedTuple

from ..arrays import Arguments, without_lock
from ..build import Builder, Value
from ..kernel import kernel
from ..products.gemm import Fields, integer_at
from ..shares import steps_worth
from ..types import I64, float32
from .winograd import APART, image_points, in_both_dimensions

LANES = 4
"""Channels that are transformed at a time."""


class GradientTiles(NamedTuple):
    """How tiles are transformed, and products transformed back; steps are in elements."""

    tiles: int
    channels: int
    rows: int
    image_row: int
    grad_row: int
    depth_block: int
    depth_blocks: int
    row_step: int  # of the gradient of the weight
    channel_step: int
    down_step: int
    across_step: int
    parts: int  # of the sums


@kernel
def points_of_images(b: Builder, args: Arguments) -> None:
    """Transform tiles of 4x4: for each point the tiles, each with its channels.

    Arguments: points, images, each tile's offset in them, `GradientTiles`.
    """
    pointers = [args.array(i).data for i in range(4)]
    sizes = Fields(b, pointers[3], GradientTiles)
    grain = steps_worth(b, sizes.channels * 16)
    with (
        without_lock(b),
        b.parallel(sizes.tiles, grain, *pointers) as (c, begin, end, (target, source, offsets, table)),
        c.loop(begin, end) as tile,
    ):
        inside = Fields(c, table, GradientTiles)
        channels = inside.channels
        here = c.at(source, float32, integer_at(c, offsets, tile))
        there = c.at(target, float32, tile * channels)
        plane = inside.tiles * channels + APART
        with c.loop(0, channels, LANES) as channel:
            square = []
            for row in range(4):
                line = c.at(here, float32, inside.image_row * row + channel)
                square.append([c.load(line, float32, channels * column, LANES) for column in range(4)])
            for point, value in enumerate(_flat(in_both_dimensions(image_points, square))):
                c.store(there, float32, plane * point + channel, value)


@kernel
def points_of_gradients(b: Builder, args: Arguments, panel: int) -> None:
    """Transform tiles of 2x2, into the panels of `panel` rows that a product takes.

    Arguments: panels, gradients, each tile's offset in them, `GradientTiles`.
    """
    pointers = [args.array(i).data for i in range(4)]
    sizes = Fields(b, pointers[3], GradientTiles)
    grain = steps_worth(b, sizes.rows * 16)
    with (
        without_lock(b),
        b.parallel(sizes.tiles, grain, *pointers) as (c, begin, end, (target, source, offsets, table)),
        c.loop(begin, end) as tile,
    ):
        inside = Fields(c, table, GradientTiles)
        rows, depth_block = inside.rows, inside.depth_block
        here = c.at(source, float32, integer_at(c, offsets, tile))
        block, depth = tile // depth_block, tile % depth_block
        size = depth_block * panel
        row_tiles = rows // panel
        there = c.at(target, float32, block * row_tiles * size + depth * panel)
        plane = inside.depth_blocks * row_tiles * size
        with c.loop(0, rows, LANES) as row:
            lines = [c.at(here, float32, inside.grad_row * i + row) for i in range(2)]
            square = [[c.load(line, float32, rows * j, LANES) for j in range(2)] for line in lines]
            place = c.at(there, float32, row // panel * size + row % panel)
            for point, value in enumerate(_flat(in_both_dimensions(_gradient_points, square))):
                c.store(place, float32, plane * point, value)


@kernel
def weights_of_points(b: Builder, args: Arguments) -> None:
    """Add up parts of sums, and transform them back.

    Arguments: weights, sums (parts, points, rows, channels), `GradientTiles`, a flag that is set if a result is not
    finite.
    """
    pointers = [args.array(i).data for i in range(4)]
    sizes = Fields(b, pointers[2], GradientTiles)
    grain = steps_worth(b, sizes.parts * sizes.channels * 16)
    with (
        without_lock(b),
        b.parallel(sizes.rows, grain, *pointers) as (c, begin, end, (target, source, table, flag)),
    ):
        inside = Fields(c, table, GradientTiles)
        channels = inside.channels
        plane = inside.rows * channels
        error = c.variable(float32.compute, c.splat(c.constant(float32.compute, 0.0), LANES), LANES)
        with c.loop(begin, end) as row, c.loop(0, channels, LANES) as channel:
            start = c.at(source, float32, row * channels + channel)
            sums = [c.variable(float32.compute, c.load(start, float32, plane * i, LANES), LANES) for i in range(16)]
            with c.loop(1, inside.parts) as part:
                for i, total in enumerate(sums):
                    total.add(c.load(start, float32, plane * (part * 16 + i), LANES))
            square = [[sums[4 * i + j].value for j in range(4)] for i in range(4)]
            place = c.at(target, float32, row * inside.row_step + channel * inside.channel_step)
            for number, value in enumerate(_flat(in_both_dimensions(_weights, square))):
                error.add(value - value)  # 0 if it is finite
                at = c.at(place, float32, inside.down_step * (number // 3) + inside.across_step * (number % 3))
                for lane in range(LANES):
                    c.store(at, float32, inside.channel_step * lane, c.lane(value, lane))
        with c.when(c.total(error.value) != 0.0):
            c.store_raw(1, flag, I64, 8)


def _flat(square: list[list[Value]]) -> list[Value]:
    return [value for line in square for value in line]


def _gradient_points(y: list[Value]) -> list[Value]:
    return [y[0], y[0] + y[1], y[0] - y[1], -y[1]]


def _weights(m: list[Value]) -> list[Value]:
    both, difference = (m[1] + m[2]) * 0.5, (m[1] - m[2]) * 0.5
    return [m[0] + both, difference, both + m[3]]
