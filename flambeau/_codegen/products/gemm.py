"""Products of matrices, tile by tile: the kernels behind convolutions and half-precision matrix products.

One kernel multiplies a packed left matrix by a right matrix that exists only as addresses: its element (k, column)
stands at `depth_offsets[k] + offset of the column`. An image with its windows is such a matrix, so that nobody ever
writes the windows down. A tile of the result stays in registers while a panel of the right matrix, copied to a place
that fits into the first cache, runs past all rows of the left one.

The columns of a tile are described by runs, columns that are neighbours in memory. A run is copied as one whole vector
of the tile's width, even if it is shorter: the next run overwrites what was too much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Arguments, without_lock
from ..build import Builder, Value, Variable
from ..ir import COMPILES
from ..kernel import kernel
from ..machine.engine import engine
from ..shares import MULTIPLICATIONS, steps_worth
from ..types import BOOL, I64, SCALARS, Scalar

DEPTH = 384
"""The most steps along the summed dimension between two visits of the result: so deep a panel stays in a cache."""


ENTRIES = 5
"""Numbers that describe a tile of columns."""


class Tile(NamedTuple):
    """The part of a result that is kept in registers: `rows` by `vectors` vectors of `lanes` numbers."""

    rows: int
    vectors: int
    lanes: int
    fused: bool  # the processor multiplies and adds in one step
    by_lane: bool  # and takes one factor from a lane of a vector
    in_place: bool = False  # columns that are contiguous in the source are read there, and not copied first
    turned: bool = False  # the depths of a column, not the columns, are neighbours in the source

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes


def tile_for(dtype: str, rows: int, columns: int = 0) -> Tile:
    """The tile that fills this processor's registers, for a left matrix of so many rows and a right one of `columns`.

    With very few rows a copied column would hardly be read a second time: then it is not copied.
    """
    if not COMPILES:
        return Tile(1, 1, 1, True, False)  # NumPy runs the product whole
    llvm = engine()
    lanes, fused, is_arm = llvm.register_bytes // SCALARS[dtype].size, llvm.fuses, llvm.is_arm
    if rows == 1:
        return Tile(1, 8, lanes, fused, False, True)
    if rows <= 4:
        return Tile(4, 4 if llvm.has_32_registers else 3, lanes, fused, is_arm, True)
    if llvm.has_32_registers:
        wide, narrow = (-columns % (vectors * lanes) for vectors in (3, 2))
        return Tile(8, 2 if (wide - narrow) * 16 > columns > 0 else 3, lanes, fused, is_arm)
    return Tile(4, 3 if fused else 2, lanes, fused, False)


class Sizes(NamedTuple):
    """What the kernel of a product needs to know; a kernel reads it from an array of integers in this order."""

    units: int  # parts of the work, in whatever order
    column_blocks: int
    row_blocks: int
    batches: int  # of columns: each has the same offsets, from another start
    groups: int
    tiles_per_unit: int
    rows_per_unit: int  # tiles of rows
    rows: int
    row_tiles: int
    columns: int
    last_columns: int  # in the last batch
    depth: int
    last_depth: int  # in the last batch of depths
    depth_block: int
    depth_blocks: int  # of one batch
    depth_batches: int
    blocks_per_chunk: int  # a chunk is a part of the summed dimension that has a result of its own
    out_row: int
    out_batch: int
    out_group: int
    out_chunk: int
    source_batch: int
    source_group: int
    source_depth_batch: int
    left_row: int
    left_group: int
    left_depth_batch: int
    limit: int  # elements of the source


class Fields:
    """The fields of `Sizes` as values of a kernel."""

    def __init__(self, b: Builder, table: Value, kind: type[Any] = Sizes) -> None:
        self._b, self._table, self._kind = b, table, kind

    def __getattr__(self, name: str) -> Value:
        position = self._kind._fields.index(name)
        return self._b.load_raw(self._b.offset(self._table, position, I64), I64, 8)


def integer_at(b: Builder, table: Value, index: Value | int) -> Value:
    return b.load_raw(b.offset(table, index, I64), I64, 8)


# ----- the left matrix ----------------------------------------------------------------------------------------------


_TILES_TOGETHER = 8
_STEPS_TOGETHER = 32
BLOCK = 4
"""Blocks of so many rows and columns are transposed in registers."""


def transposed(c: Builder, vectors: list[Value]) -> list[Value]:
    """The columns of as many vectors as each has lanes, a power of two."""
    count = len(vectors)
    half = count // 2
    low = [lane + other for lane in range(half) for other in (0, count)]
    high = [lane + other for lane in range(half, count) for other in (0, count)]
    for _ in range(count.bit_length() - 1):
        pairs = [(vectors[number], vectors[number + half]) for number in range(half)]
        vectors = [c.shuffle(*pair, lanes) for pair in pairs for lanes in (low, high)]
    return vectors


@kernel
def packed_rows(b: Builder, args: Arguments, source_type: str, compute_type: str, rows: int) -> None:
    """Copy a matrix of rows into panels: by blocks of depths and tiles of rows, the rows of one depth side by side.

    Arguments: panels, source, offsets of the depths in the source, `Sizes`. Some tiles are filled together, a few
    depths at a time, because neighbouring rows may be neighbours in memory too.
    """
    panels, source, offsets, table = (args.array(i).data for i in range(4))
    sizes = Fields(b, table)
    stacks = (sizes.row_tiles + (_TILES_TOGETHER - 1)) // _TILES_TOGETHER
    units = sizes.groups * sizes.depth_batches * sizes.depth_blocks * stacks
    grain = steps_worth(b, sizes.depth_block * (rows * _TILES_TOGETHER))
    with (
        without_lock(b),
        b.parallel(units, grain, panels, source, offsets, table, stacks) as (c, begin, end, inside),
        c.loop(begin, end) as unit,
    ):
        _write_panels(c, unit, inside, SCALARS[source_type], SCALARS[compute_type], rows)


def _write_panels(b: Builder, unit: Value, values: list[Value], memory: Scalar, compute: Scalar, rows: int) -> None:
    panels, source, offsets, table, stacks = values
    sizes = Fields(b, table)
    row_tiles, depth_block, row_step = sizes.row_tiles, sizes.depth_block, sizes.left_row
    depth_blocks, depth_batches = sizes.depth_blocks, sizes.depth_batches
    block, first_tile = unit // stacks, unit % stacks * _TILES_TOGETHER
    last_tile = b.smaller(first_tile + _TILES_TOGETHER, row_tiles)
    in_batch, batch = block % depth_blocks, block // depth_blocks % depth_batches
    group = block // (depth_blocks * depth_batches)
    depth = b.select(batch == depth_batches - 1, sizes.last_depth, sizes.depth)
    first = in_batch * depth_block
    steps = b.smaller(depth - first, depth_block)
    start = group * sizes.left_group + batch * sizes.left_depth_batch
    offsets = b.offset(offsets, first, I64)

    def from_memory(pointer: Value, index: Value, lanes: int = 1) -> Value:
        return b.convert(b.load(pointer, memory, index, lanes), compute.compute)

    together = b.select(row_step <= 64, b.integer(_STEPS_TOGETHER), b.larger(steps, 1))
    with b.loop(0, steps, together) as from_step, b.loop(first_tile, last_tile) as tile:
        to_step = b.smaller(from_step + together, steps)
        target = b.opaque(b.at(panels, compute, (block * row_tiles + tile) * depth_block * rows))
        begin = b.opaque(b.at(source, memory, start + tile * rows * row_step))
        valid = b.smaller(sizes.rows - tile * rows, rows)
        with b.either(valid == rows) as (is_whole, is_rest):
            with is_whole, b.either(row_step == 1) as (side_by_side, apart):
                with side_by_side, b.loop(from_step, to_step) as k:
                    b.store(target, compute, k * rows, from_memory(begin, integer_at(b, offsets, k), rows))
                with apart:
                    starts = [b.at(begin, memory, row_step * row) for row in range(rows)]

                    def copy_step(k: Value) -> None:
                        offset = integer_at(b, offsets, k)
                        for row in range(rows):
                            b.store(target, compute, k * rows + row, from_memory(starts[row], offset))

                    def copy_block(k: Value) -> None:
                        here = [integer_at(b, offsets, k + i) for i in range(BLOCK)]
                        steady = [here[i] == here[0] + i for i in range(1, BLOCK)]
                        with b.either(steady[0] & steady[1] & steady[2]) as (neighbours, others):
                            with neighbours:
                                for row in range(0, rows, BLOCK):
                                    block = [from_memory(each, here[0], BLOCK) for each in starts[row : row + BLOCK]]
                                    for i, column in enumerate(transposed(b, block)):
                                        b.store(target, compute, (k + i) * rows + row, column)
                            with others:
                                for i in range(BLOCK):
                                    copy_step(k + i)

                    blocks_end = from_step
                    if rows % BLOCK == 0:
                        blocks_end = from_step + (to_step - from_step) // BLOCK * BLOCK
                        with b.loop(from_step, blocks_end, BLOCK) as k:
                            copy_block(k)
                    with b.loop(blocks_end, to_step) as k:
                        copy_step(k)
            with is_rest, b.loop(from_step, to_step) as k:
                offset = integer_at(b, offsets, k)
                with b.loop(0, valid) as row:
                    b.store(target, compute, k * rows + row, from_memory(begin, row * row_step + offset))
                with b.loop(valid, rows) as row:
                    b.store(target, compute, k * rows + row, 0.0)


# ----- the product --------------------------------------------------------------------------------------------------


def multiply(
    b: Builder,
    scalar: Scalar,
    tile: Tile,
    left: Value,
    initial: Value,
    steps: Value,
    columns: Callable[[Value], list[Value]],
    of_tile: bool = False,
) -> list[list[Variable]]:
    """The sums of a tile: `initial`, a number for each row, plus the products of `steps` depths.

    `of_tile`: `initial` has a number for each element of the tile.
    """
    sums = []
    for row in range(tile.rows):
        if of_tile:
            at = range(row * tile.columns, (row + 1) * tile.columns, tile.lanes)
            values = [b.load(initial, scalar, each, tile.lanes) for each in at]
        else:
            values = [b.splat(b.load(initial, scalar, row), tile.lanes)] * tile.vectors
        sums.append([b.variable(scalar.compute, value, tile.lanes) for value in values])

    def step(k: Value) -> None:
        right = columns(k)
        for row, factor in enumerate(_factors(b, scalar, tile, left, k)):
            for vector in range(tile.vectors):
                total = sums[row][vector]
                if tile.fused:
                    total.value = b.fma(right[vector], factor, total.value)
                else:
                    total.value = right[vector] * factor + total.value

    unrolled = steps // 2 * 2
    with b.loop(0, unrolled, 2) as k:
        step(k)
        step(k + 1)
    with b.when(unrolled < steps):
        step(unrolled)
    return sums


def _factors(b: Builder, scalar: Scalar, tile: Tile, left: Value, k: Value) -> list[Value]:
    """The numbers of the left matrix for one depth, each in all lanes of a vector."""
    if not tile.by_lane:
        each = [b.load(left, scalar, k * tile.rows + row) for row in range(tile.rows)]
        return [b.splat(value, tile.lanes) for value in each]
    vectors = [b.load(left, scalar, k * tile.rows + at, tile.lanes) for at in range(0, tile.rows, tile.lanes)]
    return [b.shuffle(vector, None, [lane] * tile.lanes) for vector in vectors for lane in range(tile.lanes)]


def from_panel(b: Builder, scalar: Scalar, tile: Tile, panel: Value) -> Callable[[Value], list[Value]]:
    """The columns of a panel: for each depth a row of numbers side by side."""

    def load(k: Value) -> list[Value]:
        at, lanes = k * tile.columns, tile.lanes
        return [b.load(panel, scalar, at + vector * lanes, lanes) for vector in range(tile.vectors)]

    return load


@kernel
def tiled_product(b: Builder, args: Arguments, dtype: str, tile: tuple[Any, ...], chained: bool) -> None:
    """The product of packed rows and of a matrix of addresses, plus a number for each row.

    Blocks of depths are summed up by themselves and added; `chained`: each goes on with the sums of the one before, so
    that an element is one chain of multiplications and additions, wherever the blocks begin.

    Arguments: the result, the packed rows, the source, the number for each row, the offsets of the depths in the
    source, for each tile of columns (first run, last run, whether its vectors are contiguous in the result, whether
    they are in the source, the reach of its runs beyond the start), the runs (offset, first column, length), the
    columns' offsets in the source and in the result, `Sizes`.
    """
    pointers = [args.array(i).data for i in range(10)]
    sizes, rows, columns = Fields(b, pointers[9]), Tile(*tile).rows, Tile(*tile).columns
    area = sizes.tiles_per_unit * columns * sizes.rows_per_unit * rows
    grain = steps_worth(b, area * sizes.blocks_per_chunk * sizes.depth_block, MULTIPLICATIONS)
    with without_lock(b), b.parallel(sizes.units, grain, *pointers) as (c, begin, end, inside):
        _Product(c, SCALARS[dtype], Tile(*tile), chained, inside).write(begin, end)


class _Product:
    """Writes the body of `tiled_product`."""

    def __init__(self, b: Builder, scalar: Scalar, tile: Tile, chained: bool, pointers: list[Value]) -> None:
        self.b, self.scalar, self.tile, self.chained = b, scalar, tile, chained
        self.out, self.left, self.source, self.starts, self.offsets = pointers[:5]
        self.tiles, self.runs, self.columns, self.places, table = pointers[5:]
        self.sizes = Fields(b, table)
        # A run that is copied whole may reach one panel's width beyond the last one.
        self.panel = b.stack(scalar.memory, (DEPTH + 1) * tile.columns, 64)
        self.rest = b.stack(scalar.memory, tile.rows * tile.columns, 64)
        self.zeros = b.stack(scalar.memory, tile.rows, 64)
        for row in range(tile.rows):
            b.store(self.zeros, scalar, row, 0.0)

    def write(self, begin: Value, end: Value) -> None:
        b, sizes, scalar, tile = self.b, self.sizes, self.scalar, self.tile
        with b.loop(begin, end) as unit:
            column_block, rest = unit % sizes.column_blocks, unit // sizes.column_blocks
            row_block, rest = rest % sizes.row_blocks, rest // sizes.row_blocks
            batch, rest = rest % sizes.batches, rest // sizes.batches
            group, chunk = rest % sizes.groups, rest // sizes.groups
            columns = b.select(batch == sizes.batches - 1, sizes.last_columns, sizes.columns)
            tile_begin = column_block * sizes.tiles_per_unit
            tile_end = b.smaller(tile_begin + sizes.tiles_per_unit, (columns + (tile.columns - 1)) // tile.columns)
            row_begin = row_block * sizes.rows_per_unit
            row_end = b.smaller(row_begin + sizes.rows_per_unit, sizes.row_tiles)
            out = b.at(self.out, scalar, chunk * sizes.out_chunk + group * sizes.out_group + batch * sizes.out_batch)
            base = group * sizes.source_group + batch * sizes.source_batch
            blocks = sizes.depth_blocks * sizes.depth_batches
            block_begin = chunk * sizes.blocks_per_chunk
            block_end = b.smaller(block_begin + sizes.blocks_per_chunk, blocks)
            panel_size = sizes.depth_block * tile.rows
            with b.loop(block_begin, block_end) as block:
                in_batch, depth_batch = block % sizes.depth_blocks, block // sizes.depth_blocks
                depth = b.select(depth_batch == sizes.depth_batches - 1, sizes.last_depth, sizes.depth)
                first = in_batch * sizes.depth_block
                steps = b.smaller(depth - first, sizes.depth_block)
                start = base + depth_batch * sizes.source_depth_batch
                left = b.at(self.left, scalar, (group * blocks + block) * sizes.row_tiles * panel_size)
                is_first = block == block_begin
                starts = b.at(self.starts, scalar, group * sizes.row_tiles * tile.rows)
                offsets = b.offset(self.offsets, first, I64)

                def multiply_rows(number: Value, right: Callable[[Value], list[Value]]) -> None:
                    valid = b.smaller(columns - number * tile.columns, tile.columns)
                    with b.loop(row_begin, row_end) as row_tile:
                        of_rows = b.at(starts, scalar, row_tile * tile.rows)
                        here = b.at(left, scalar, row_tile * panel_size)
                        if self.chained:
                            self._take_up(out, number, row_tile, valid, is_first, of_rows)
                            sums = multiply(b, scalar, tile, here, self.rest, steps, right, of_tile=True)
                            self._store(out, number, row_tile, valid, b.constant(BOOL, 1), sums)
                        else:
                            initial = b.select(is_first, of_rows, self.zeros)
                            sums = multiply(b, scalar, tile, here, initial, steps, right)
                            self._store(out, number, row_tile, valid, is_first, sums)

                with b.loop(tile_begin, tile_end) as number:
                    entry = b.offset(self.tiles, number * ENTRIES, I64)
                    is_inside = start + integer_at(b, entry, 4) <= sizes.limit
                    if tile.in_place:
                        with b.either(is_inside & (integer_at(b, entry, 3) != 0)) as (in_place, copied):
                            with in_place:
                                multiply_rows(number, self._from_source(number, start, offsets))
                            with copied:
                                self._copy_panel(entry, start, is_inside, offsets, steps)
                                multiply_rows(number, from_panel(b, scalar, tile, self.panel))
                    elif tile.turned:
                        self._turn_panel(number * tile.columns, columns, start + integer_at(b, offsets, 0), steps)
                        multiply_rows(number, from_panel(b, scalar, tile, self.panel))
                    else:
                        self._copy_panel(entry, start, is_inside, offsets, steps)
                        multiply_rows(number, from_panel(b, scalar, tile, self.panel))

    def _from_source(self, number: Value, start: Value, offsets: Value) -> Callable[[Value], list[Value]]:
        b, scalar, tile = self.b, self.scalar, self.tile
        columns = b.offset(self.columns, number * tile.columns, I64)
        starts = [
            b.at(self.source, scalar, start + integer_at(b, columns, vector * tile.lanes))
            for vector in range(tile.vectors)
        ]

        def load(k: Value) -> list[Value]:
            offset = integer_at(b, offsets, k)
            b.prefetch(b.at(starts[-1], scalar, offset + tile.columns))  # for the next tile
            return [b.load(each, scalar, offset, tile.lanes) for each in starts]

        return load

    def _copy_panel(self, entry: Value, start: Value, is_inside: Value, offsets: Value, steps: Value) -> None:
        """Copy the columns of a tile, one depth after the other."""
        b, scalar, width = self.b, self.scalar, self.tile.columns
        first, last = (integer_at(b, entry, i) for i in (0, 1))
        runs = b.offset(self.runs, first * 3, I64)
        count = last - first
        source = b.at(self.source, scalar, start)

        def copy(offset: Value, from_: Value, to: Value) -> None:
            for vector in range(self.tile.vectors):
                at = vector * self.tile.lanes
                b.store(self.panel, scalar, to + at, b.load(source, scalar, offset + from_ + at, self.tile.lanes))

        with b.either(is_inside) as (inside, at_the_end):
            with inside, b.either(count == 1) as (one, several):
                with one:
                    from_ = integer_at(b, runs, 0)
                    with b.loop(0, steps) as k:
                        copy(integer_at(b, offsets, k), from_, k * width)
                with several, b.either(count == 2) as (two, more):
                    with two:
                        starts = [integer_at(b, runs, i) for i in (0, 3)]
                        second = integer_at(b, runs, 4)
                        with b.loop(0, steps) as k:
                            offset = integer_at(b, offsets, k)
                            copy(offset, starts[0], k * width)
                            copy(offset, starts[1], k * width + second)
                    with more, b.loop(0, steps) as k:
                        offset = integer_at(b, offsets, k)
                        with b.loop(0, count * 3, 3) as run:
                            copy(offset, integer_at(b, runs, run), k * width + integer_at(b, runs, run + 1))
            with at_the_end, b.loop(0, steps) as k:  # not one element too much may be read here
                offset = integer_at(b, offsets, k)
                # What a tile has too much is multiplied too, and some processors take very long for denormal numbers.
                for vector in range(self.tile.vectors):
                    nothing = b.splat(b.constant(scalar.compute, 0.0), self.tile.lanes)
                    b.store(self.panel, scalar, k * width + vector * self.tile.lanes, nothing)
                with b.loop(0, count * 3, 3) as run:
                    from_, to = integer_at(b, runs, run), k * width + integer_at(b, runs, run + 1)
                    with b.loop(0, integer_at(b, runs, run + 2)) as i:
                        b.store(self.panel, scalar, to + i, b.load(source, scalar, offset + from_ + i))

    def _turn_panel(self, first: Value, columns: Value, start: Value, steps: Value) -> None:
        """Copy the columns of a tile, which are rows of memory, in blocks that are transposed in registers."""
        b, scalar, width, lanes = self.b, self.scalar, self.tile.columns, self.tile.lanes
        whole = steps // lanes * lanes
        with b.loop(0, width, lanes) as at:
            numbers = [b.smaller(first + at + lane, columns - 1) for lane in range(lanes)]
            lines = [b.at(self.source, scalar, start + integer_at(b, self.columns, each)) for each in numbers]
            with b.loop(0, whole, lanes) as k:
                loaded = [b.load(line, scalar, k, lanes) for line in lines]
                for step, column in enumerate(transposed(b, loaded)):
                    b.store(self.panel, scalar, (k + step) * width + at, column)
            with b.loop(whole, steps) as k:
                for lane, line in enumerate(lines):
                    b.store(self.panel, scalar, k * width + at + lane, b.load(line, scalar, k))

    def _take_up(
        self, out: Value, number: Value, row_tile: Value, columns: Value, is_first: Value, of_rows: Value
    ) -> None:
        """Fill `rest` with the sums so far: a number for each row, or what the depths before have given."""
        b, scalar, tile, sizes = self.b, self.scalar, self.tile, self.sizes
        rows = b.smaller(sizes.rows - row_tile * tile.rows, tile.rows)
        places = b.offset(self.places, number * tile.columns, I64)
        corner = b.at(out, scalar, row_tile * tile.rows * sizes.out_row)
        whole = (rows == tile.rows) & (columns == tile.columns)
        is_contiguous = integer_at(b, self.tiles, number * ENTRIES + 2) != 0
        at = range(0, tile.columns, tile.lanes)
        with b.either(is_first) as (begins, goes_on):
            with begins:
                for row in range(tile.rows):
                    value = b.splat(b.load(of_rows, scalar, row), tile.lanes)
                    for column in at:
                        b.store(self.rest, scalar, row * tile.columns + column, value)
            with goes_on, b.either(whole & is_contiguous) as (directly, scattered):
                with directly:
                    for column in at:
                        start = b.at(corner, scalar, integer_at(b, places, column))
                        for row in range(tile.rows):
                            value = b.load(start, scalar, sizes.out_row * row, tile.lanes)
                            b.store(self.rest, scalar, row * tile.columns + column, value)
                with scattered, b.loop(0, columns) as across:
                    place = b.at(corner, scalar, integer_at(b, places, across))
                    with b.loop(0, rows) as down:
                        found = b.load(place, scalar, sizes.out_row * down)
                        b.store(self.rest, scalar, down * tile.columns + across, found)

    def _store(
        self, out: Value, number: Value, row_tile: Value, columns: Value, is_first: Value, sums: list[list[Variable]]
    ) -> None:
        """Write a tile, or add it to what the depths before have given."""
        b, scalar, tile, sizes = self.b, self.scalar, self.tile, self.sizes
        rows = b.smaller(sizes.rows - row_tile * tile.rows, tile.rows)
        contiguous = integer_at(b, self.tiles, number * ENTRIES + 2)
        places = b.offset(self.places, number * tile.columns, I64)
        row_step = sizes.out_row
        corner = b.at(out, scalar, row_tile * tile.rows * row_step)
        whole = (rows == tile.rows) & (columns == tile.columns)
        with b.either(whole & (contiguous != 0)) as (directly, scattered):
            with directly:
                starts = [b.at(corner, scalar, integer_at(b, places, v * tile.lanes)) for v in range(tile.vectors)]
                with b.either(is_first) as (write, add):
                    for context, keep in ((write, False), (add, True)):
                        with context:
                            for row in range(tile.rows):
                                for start, total in zip(starts, sums[row], strict=True):
                                    value = total.value
                                    if keep:
                                        value = value + b.load(start, scalar, row_step * row, tile.lanes)
                                    b.store(start, scalar, row_step * row, value)
            with scattered:
                for row in range(tile.rows):
                    for vector, total in enumerate(sums[row]):
                        b.store(self.rest, scalar, row * tile.columns + vector * tile.lanes, total.value)
                with b.either(whole) as (all_rows, some_rows):
                    with all_rows, b.loop(0, tile.columns) as column:
                        place = b.at(corner, scalar, integer_at(b, places, column))
                        with b.either(is_first) as (write, add):
                            for context, keep in ((write, False), (add, True)):
                                with context:
                                    for row in range(tile.rows):
                                        self._store_one(place, row_step * row, column, row, keep)
                    with some_rows, b.loop(0, columns) as column:
                        place = b.at(corner, scalar, integer_at(b, places, column))
                        with b.loop(0, rows) as at, b.either(is_first) as (write, add):
                            for context, keep in ((write, False), (add, True)):
                                with context:
                                    self._store_one(place, row_step * at, column, at, keep)

    def _store_one(self, place: Value, offset: Value, column: Value, row: Value | int, keep: bool) -> None:
        value = self.b.load(self.rest, self.scalar, column + row * self.tile.columns)
        if keep:
            value = value + self.b.load(place, self.scalar, offset)
        self.b.store(place, self.scalar, offset, value)


def as_array(sizes: tuple[int, ...]) -> Any:
    """Sizes as kernels read them."""
    return np.array(sizes, np.int64)
