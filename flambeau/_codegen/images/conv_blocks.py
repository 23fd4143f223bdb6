"""Convolutions whose sums are taken by blocks of channels, the order of oneDNN's kernels for AVX-512.

For each block of channels in turn a sum is begun at zero: over the kernel's rows, its columns, then the channels of the
block. It is added to what the blocks before have come to; the bias to that of the first. So these kernels have that
library's bits, but read and write images and weights as they are: the library brings all three into another layout, and
fills channels up with zeros to a multiple of the block.

Windows move in steps of 1 over images without padding. So the elements that meet a tap are rows of the image below each
other: they are copied to a panel once for each column of the kernel, and vectors of positions are read there.
"""

from __future__ import annotations

from typing import NamedTuple

from ..arrays import Arguments
from ..build import Builder, Value, Variable
from ..kernel import kernel
from ..products.gemm import Fields
from ..rows.shared import scratch
from ..shares import MULTIPLICATIONS, steps_worth
from ..types import POINTER, SCALARS

BLOCK = 16
"""Channels of a block, and numbers in a vector."""

_FLOAT = SCALARS["float32"]


class Sizes(NamedTuple):
    """What a kernel needs to know, in the order in which it reads it."""

    batch: int
    parts: int  # of the outputs of an image, which threads share
    channels: int
    height: int
    width: int
    outputs: int
    kernel_height: int
    kernel_width: int
    rows: int  # of the output
    columns: int

    @property
    def panel(self) -> int:
        """Elements of the panel of one image."""
        return self.channels * self.kernel_width * self.height * self.columns


class Tile(NamedTuple):
    """The part of a result that is kept in registers: outputs, and vectors of positions."""

    outputs: int
    vectors: int

    @property
    def positions(self) -> int:
        return self.vectors * BLOCK


@kernel
def correlate_blocks(b: Builder, arguments: Arguments, outputs: int, vectors: int, lanes: int, biased: bool) -> None:
    """(out, images, weight, sizes[, bias]).

    `outputs` and `vectors` are those of a tile. The last tiles overlap those before: all of them write the same there.
    `lanes` elements are copied to the panel at a time, at most as many as there are columns.
    """
    captured = [arguments.array(number).data for number in range(5 if biased else 4)]
    sizes = Fields(b, captured[3], Sizes)
    work = sizes.outputs * sizes.channels * sizes.kernel_height * sizes.kernel_width * sizes.rows * sizes.columns
    grain = steps_worth(b, work // sizes.parts, MULTIPLICATIONS)
    with (
        b.parallel(sizes.batch * sizes.parts, grain, *captured, unlock=True) as (c, begin, end, inside),
        c.loop(begin, end) as unit,
    ):
        out, images, weight, table, *bias = inside
        image = _Image(c, Tile(outputs, vectors), Fields(c, table, Sizes), weight, bias[0] if biased else None)
        image.write(out, images, unit, lanes)


def _copy_to_panel(c: Builder, sizes: Fields, panel: Value, image: Value, lanes: int) -> None:
    """For each channel and each column of the kernel, what its windows meet of all rows."""
    height, width, columns, taps = sizes.height, sizes.width, sizes.columns, sizes.kernel_width
    last = columns - lanes
    with c.loop(0, sizes.channels) as channel, c.loop(0, taps) as tap:
        source = c.at(image, _FLOAT, channel * height * width + tap)
        target = c.at(panel, _FLOAT, (channel * taps + tap) * height * columns)
        with c.loop(0, height) as row:
            line, copy = (c.at(at, _FLOAT, row * step) for at, step in ((source, width), (target, columns)))
            with c.loop(0, columns, lanes) as column:
                place = c.smaller(column, last)
                c.store(copy, _FLOAT, place, c.load(line, _FLOAT, place, lanes))


def _tiles(count: Value, size: int) -> Value:
    return (count + (size - 1)) // size


class _Image:
    """Writes what is computed for a part of the outputs of one image."""

    def __init__(self, c: Builder, tile: Tile, sizes: Fields, weight: Value, bias: Value | None) -> None:
        self.c, self.tile, self.sizes, self.weight, self.bias = c, tile, sizes, weight, bias
        self.totals = c.stack(_FLOAT.memory, tile.outputs * tile.positions, 64)

    def write(self, out: Value, images: Value, unit: Value, lanes: int) -> None:
        c, sizes, tile = self.c, self.sizes, self.tile
        positions, plane = sizes.rows * sizes.columns, sizes.height * sizes.columns
        depth = sizes.channels * sizes.kernel_height * sizes.kernel_width
        number, part = unit // sizes.parts, unit % sizes.parts
        with scratch(c, _FLOAT, sizes.channels * sizes.kernel_width * plane) as panel:
            area = sizes.channels * sizes.height * sizes.width
            _copy_to_panel(c, sizes, panel, c.at(images, _FLOAT, number * area), lanes)
            result = c.at(out, _FLOAT, number * sizes.outputs * positions)
            down, across = _tiles(sizes.outputs, tile.outputs), _tiles(positions, tile.positions)
            first, last = (down * each // sizes.parts for each in (part, part + 1))
            with c.loop(0, across) as at_column, c.loop(first, last) as at_row:
                column = c.smaller(at_column * tile.positions, positions - tile.positions)
                row = c.smaller(at_row * tile.outputs, sizes.outputs - tile.outputs)
                self._begin(row)
                with c.loop(0, sizes.channels, BLOCK) as block:
                    factors = c.at(self.weight, _FLOAT, row * depth)
                    self._add_block(block, c.at(panel, _FLOAT, column), factors, plane, depth)
                place = c.at(result, _FLOAT, row * positions + column)
                for output in range(tile.outputs):
                    for vector in range(tile.vectors):
                        total = c.load(self.totals, _FLOAT, self._at(output, vector), BLOCK)
                        c.store(place, _FLOAT, positions * output + vector * BLOCK, total)

    def _at(self, output: int, vector: int) -> int:
        return (output * self.tile.vectors + vector) * BLOCK

    def _begin(self, row: Value) -> None:
        """What the first block is added to."""
        c = self.c
        for output in range(self.tile.outputs):
            start = c.constant(_FLOAT.compute, 0.0) if self.bias is None else c.load(self.bias, _FLOAT, row + output)
            for vector in range(self.tile.vectors):
                c.store(self.totals, _FLOAT, self._at(output, vector), c.splat(start, BLOCK))

    def _add_block(self, first: Value, panel: Value, weight: Value, plane: Value, depth: Value) -> None:
        c, sizes, tile = self.c, self.sizes, self.tile
        taps_down, taps = sizes.kernel_height, sizes.kernel_width
        channels = c.smaller(sizes.channels - first, BLOCK)
        each_output, each_vector = range(tile.outputs), range(tile.vectors)
        sums: list[list[Variable]] = [
            [c.variable(_FLOAT.compute, 0.0, BLOCK) for _ in each_vector] for _ in each_output
        ]
        next_plane, next_weight = taps * plane, taps_down * taps
        offsets = [depth * output for output in each_output]
        with c.loop(0, taps_down) as down, c.loop(0, taps) as tap:
            place = c.variable(POINTER, c.at(panel, _FLOAT, (first * taps + tap) * plane + down * sizes.columns))
            factor = c.variable(POINTER, c.at(weight, _FLOAT, first * next_weight + down * taps + tap))
            with c.loop(0, channels):
                line = [c.load(place.value, _FLOAT, vector * BLOCK, BLOCK) for vector in each_vector]
                for output in each_output:
                    number = c.splat(c.load(factor.value, _FLOAT, offsets[output]), BLOCK)
                    for vector in each_vector:
                        total = sums[output][vector]
                        total.value = c.fma(number, line[vector], total.value)
                place.value = c.at(place.value, _FLOAT, next_plane)
                factor.value = c.at(factor.value, _FLOAT, next_weight)
        for output in each_output:
            for vector in each_vector:
                at = self._at(output, vector)
                before = c.load(self.totals, _FLOAT, at, BLOCK)
                c.store(self.totals, _FLOAT, at, sums[output][vector].value + before)
