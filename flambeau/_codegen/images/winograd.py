"""Convolutions with kernels of 3x3 by Winograd's method: 16 multiplications for 4 results instead of 36.

A tile of 2x2 results depends on 4x4 numbers of the image. In a transformed domain the convolution is a product of
numbers, number by number, so that the sums over channels are 16 products of matrices. The transforms are sums alone.
(Winograd, Arithmetic Complexity of Computations, 1980; Lavin and Gray, Fast Algorithms for Convolutional Neural
Networks, 2015.) The image's rows are stored with their even columns first: neighbouring tiles read neighbours.

Infinities do not survive sums like `a - b`, which are NaN then: the kernel says whether any result is not finite, and
the caller computes it in another way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..arrays import Arguments, without_lock
from ..build import Builder, Value
from ..kernel import kernel
from ..products.gemm import Fields, Tile, from_panel, integer_at, multiply
from ..rows.shared import scratch
from ..shares import MULTIPLICATIONS, steps_worth
from ..types import F32, I64, SCALARS, float32

POINTS = 16
"""Numbers of a transformed tile."""
APART = 48
"""Elements between the planes of points: planes a power of two apart would compete for the same places in caches."""
_TOGETHER = 4
"""Tiles that are transformed at a time."""


class Winograd(NamedTuple):
    """The numbers of a convolution by tiles; steps are in elements."""

    units: int
    batches: int
    blocks: int  # units of one batch
    panels_per_unit: int
    tiles: int  # of one batch
    last_tiles: int
    channels: int
    rows: int
    row_tiles: int
    source_batch: int
    source_channel: int
    source_row: int
    source_phase: int  # from the even columns of a row to the odd ones
    out_batch: int
    out_channel: int
    out_row: int
    weight_start: int
    weight_row: int
    weight_channel: int
    weight_down: int
    weight_across: int


# ----- transforms ---------------------------------------------------------------------------------------------------


def image_points(d: list[Value]) -> list[Value]:
    """Four numbers in a row, transformed."""
    return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]


def _weight_points(g: list[Value]) -> list[Value]:
    ends, middle = (g[0] + g[2]) * 0.5, g[1] * 0.5
    return [g[0], ends + middle, ends - middle, g[2]]


def _results(m: list[Value]) -> list[Value]:
    return [m[0] + m[1] + m[2], m[1] - m[2] - m[3]]


def in_both_dimensions(one: Any, square: list[list[Value]]) -> list[list[Value]]:
    """A transform of columns, then of rows."""
    columns = [one(list(column)) for column in zip(*square, strict=True)]
    return [one(list(row)) for row in zip(*columns, strict=True)]


# ----- weights ------------------------------------------------------------------------------------------------------


@kernel
def winograd_weights(b: Builder, args: Arguments, source_type: str, rows: int) -> None:
    """Transform weights into panels of `rows` rows, one set for each point. Arguments: panels, weights, `Winograd`."""
    panels, weights, table = (args.array(i).data for i in range(3))
    memory = SCALARS[source_type]
    sizes = Fields(b, table, Winograd)
    grain = steps_worth(b, sizes.channels * (POINTS * rows))
    with (
        without_lock(b),
        b.parallel(sizes.row_tiles, grain, panels, weights, table) as (c, begin, end, inside),
        c.loop(begin, end) as row_tile,
    ):
        target, source, table = inside
        sizes = Fields(c, table, Winograd)
        channels, row_tiles = sizes.channels, sizes.row_tiles
        start = c.at(source, memory, sizes.weight_start)
        down, across, plane = sizes.weight_down, sizes.weight_across, row_tiles * channels * rows + APART
        with c.loop(0, rows, _TOGETHER) as row:
            number = row_tile * rows + row
            # Rows beyond the last one repeat it: nobody reads what they give.
            lines = [
                c.at(start, memory, c.smaller(number + i, sizes.rows - 1) * sizes.weight_row) for i in range(_TOGETHER)
            ]
            with c.loop(0, channels) as channel:
                from_ = channel * sizes.weight_channel
                taps = [
                    [
                        c.gathered([c.load(line, memory, from_ + down * i + across * j) for line in lines])
                        for j in range(3)
                    ]
                    for i in range(3)
                ]
                to = c.at(target, float32, (row_tile * channels + channel) * rows + row)
                points = in_both_dimensions(_weight_points, taps)
                for point, value in enumerate(value for line in points for value in line):
                    c.store(to, float32, plane * point, value)


# ----- the convolution ----------------------------------------------------------------------------------------------


@kernel
def winograd(b: Builder, args: Arguments, tile: tuple[Any, ...]) -> None:
    """The convolution of a planar image in two phases.

    Arguments: the result, the source, transformed weights, a start for each row, for each tile its offset in the source
    and in the result, and how much of it is inside the result (1: its second column, 2: its second row), for each four
    tiles whether they are neighbours and have two columns, `Winograd`, a flag that is set if a result is not finite.
    """
    pointers = [args.array(i).data for i in range(10)]
    sizes = Fields(b, pointers[8], Winograd)
    area = sizes.panels_per_unit * Tile(*tile).columns * sizes.row_tiles * Tile(*tile).rows
    grain = steps_worth(b, area * sizes.channels * POINTS, MULTIPLICATIONS)
    with without_lock(b), b.parallel(sizes.units, grain, *pointers) as (c, begin, end, inside):
        _Winograd(c, Tile(*tile), inside).write(begin, end)


class _Winograd:
    """Writes the body of `winograd`."""

    def __init__(self, b: Builder, tile: Tile, pointers: list[Value]) -> None:
        self.b, self.tile = b, tile
        self.out, self.source, self.weights, self.starts, self.from_, self.to, self.parts = pointers[:7]
        self.neighbours, table, self.flag = pointers[7:]
        self.sizes = Fields(b, table, Winograd)
        self.products = b.stack(F32, POINTS * tile.rows * tile.columns, 64)
        self.few = b.stack(F32, 4 * _TOGETHER, 64)
        self.zero = b.stack(F32, tile.rows, 64)
        for row in range(tile.rows):
            b.store(self.zero, float32, row, 0.0)
        # It stays 0 while all results are finite.
        self.error = b.variable(F32, b.splat(b.constant(F32, 0.0), _TOGETHER), _TOGETHER)

    def write(self, begin: Value, end: Value) -> None:
        b, sizes, tile = self.b, self.sizes, self.tile
        panel_size = sizes.channels * tile.columns
        plane = sizes.panels_per_unit * panel_size + APART
        with scratch(b, float32, plane * POINTS) as image, b.loop(begin, end) as unit:
            block, batch = unit % sizes.blocks, unit // sizes.blocks
            tiles = b.select(batch == sizes.batches - 1, sizes.last_tiles, sizes.tiles)
            first = block * sizes.panels_per_unit
            last = b.smaller(first + sizes.panels_per_unit, (tiles + (tile.columns - 1)) // tile.columns)
            source = b.at(self.source, float32, batch * sizes.source_batch)
            out = b.at(self.out, float32, batch * sizes.out_batch)
            with b.loop(first, last) as panel:
                target = b.at(image, float32, (panel - first) * panel_size)
                self._transform_panel(source, panel * tile.columns, tiles, target, plane)
            weight_plane = sizes.row_tiles * sizes.channels * tile.rows + APART
            with b.loop(0, sizes.row_tiles) as row_tile, b.loop(first, last) as panel:
                weights = b.at(self.weights, float32, row_tile * sizes.channels * tile.rows)
                right = b.at(image, float32, (panel - first) * panel_size)
                with b.loop(0, POINTS) as point:
                    left = b.at(weights, float32, point * weight_plane)
                    columns = from_panel(b, float32, tile, b.at(right, float32, point * plane))
                    sums = multiply(b, float32, tile, left, self.zero, sizes.channels, columns)
                    to = b.at(self.products, float32, point * (tile.rows * tile.columns))
                    for row in range(tile.rows):
                        for vector, total in enumerate(sums[row]):
                            b.store(to, float32, row * tile.columns + vector * tile.lanes, total.value)
                with b.loop(0, b.smaller(sizes.rows - row_tile * tile.rows, tile.rows)) as line:
                    self._write_row(out, row_tile * tile.rows + line, line, panel * tile.columns, tiles)
        with b.when(b.total(self.error.value) != 0.0):
            b.store_raw(1, self.flag, I64, 8)

    def _transform_panel(self, source: Value, first: Value, tiles: Value, target: Value, plane: Value) -> None:
        """Transform the tiles of a panel, in all channels."""
        b, sizes, width = self.b, self.sizes, self.tile.columns

        def transform(from_: Value, lane: Value, lanes: int) -> None:
            start = b.at(source, float32, integer_at(b, self.from_, from_))
            to = b.at(target, float32, lane)
            with b.loop(0, sizes.channels) as channel:
                here = b.at(start, float32, channel * sizes.source_channel)
                square = []
                for row in range(4):
                    even = b.at(here, float32, sizes.source_row * row)
                    odd = b.at(even, float32, sizes.source_phase)
                    square.append([b.load(each, float32, at, lanes) for at in (0, 1) for each in (even, odd)])
                points = in_both_dimensions(image_points, square)
                there = b.at(to, float32, channel * width)
                for point, value in enumerate(value for line in points for value in line):
                    b.store(there, float32, plane * point, value)

        with b.loop(0, width, _TOGETHER) as lane:
            number = first + lane
            with b.either(self._are_neighbours(number, tiles)) as (together, apart):
                with together:
                    transform(number, lane, _TOGETHER)
                with apart, b.loop(0, _TOGETHER) as i:  # lanes without a tile repeat the last one
                    transform(b.smaller(number + i, tiles - 1), lane + i, 1)

    def _are_neighbours(self, number: Value, tiles: Value) -> Value:
        flag = integer_at(self.b, self.neighbours, number // _TOGETHER)
        return (flag != 0) & (number + _TOGETHER <= tiles)

    def _write_row(self, out: Value, channel: Value, row: Value, first: Value, tiles: Value) -> None:
        """Transform one row of the products back, and write it."""
        b, sizes, tile = self.b, self.sizes, self.tile
        size = tile.rows * tile.columns
        plane = b.at(out, float32, channel * sizes.out_channel)
        start = b.splat(b.load(self.starts, float32, channel), _TOGETHER)
        with b.loop(0, tile.columns, _TOGETHER) as lane:
            at = row * tile.columns + lane
            square = [
                [b.load(self.products, float32, at + (4 * i + j) * size, _TOGETHER) for j in range(4)] for i in range(4)
            ]
            results = in_both_dimensions(_results, square)
            values = [value + start for line in results for value in line]
            for value in values:
                self.error.value = self.error.value + (value - value)
            number = first + lane
            with b.either(self._are_neighbours(number, tiles)) as (together, apart):
                with together:
                    place = b.at(plane, float32, integer_at(b, self.to, number))
                    b.store(place, float32, 0, b.shuffle(values[0], values[1], [0, 4, 1, 5, 2, 6, 3, 7]))
                    with b.when((integer_at(b, self.parts, number) & 2) != 0):
                        b.store(
                            place, float32, sizes.out_row, b.shuffle(values[2], values[3], [0, 4, 1, 5, 2, 6, 3, 7])
                        )
                with apart:
                    for which, value in enumerate(values):
                        b.store(self.few, float32, which * _TOGETHER, value)
                    count = b.smaller(tiles - number, _TOGETHER)
                    with b.loop(0, count) as i:
                        place = b.at(plane, float32, integer_at(b, self.to, number + i))
                        parts = integer_at(b, self.parts, number + i)
                        for which in range(4):
                            with b.when((parts & which) == which):
                                value = b.load(self.few, float32, i + which * _TOGETHER)
                                b.store(place, float32, sizes.out_row * (which // 2) + which % 2, value)
