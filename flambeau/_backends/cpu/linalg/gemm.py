"""Plans for the generated product of matrices.

Working memory is new for each product: the caching allocator under NumPy makes that cheap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...._codegen.ir import COMPILES
from ...._codegen.on_numpy.products import planned
from ...._codegen.products.gemm import DEPTH, Sizes, Tile, as_array, packed_rows, tile_for, tiled_product
from ...._core.process.threads import num_threads
from ..memory.workspace import DIRECT, Workspace
from ..runtime.dtypes import float_name

_PANEL_ELEMENTS = 160_000
"""Elements of the left matrix between two visits of the result: they should stay in a core's second cache."""
_CHUNKS = 16
"""Parts of the summed dimension, where there are too few tiles to share."""


def wanted_units() -> int:
    """Parts that work is cut into: enough to keep all threads busy to the end."""
    return max(8, 4 * num_threads())


class Columns(NamedTuple):
    """The columns of the right matrix and of the result, as kernels read them."""

    tiles: Any
    runs: Any
    offsets: Any
    places: Any


def columns(offsets: Any, places: Any, farthest: int, tile: Tile) -> Columns:
    """Columns that begin at `offsets` in the source, with depths up to `farthest`, and are to stand at `places`."""
    width, count = tile.columns, len(offsets)
    tiles = -(-count // width)
    missing = tiles * width - count
    ahead = np.arange(1, missing + 1)
    offsets = np.concatenate([offsets, offsets[-1] + ahead])
    places = np.concatenate([places, places[-1] + ahead])
    begins = np.ones(len(offsets), bool)
    begins[1:] = np.diff(offsets) != 1
    begins[::width] = True
    starts = np.flatnonzero(begins)
    ends = np.minimum(np.append(starts[1:], len(offsets)), count)
    runs = np.stack([offsets[starts], starts % width, ends - starts], 1)
    first = np.searchsorted(starts, np.arange(tiles) * width)
    last = np.append(first[1:], len(starts))
    is_whole, is_contiguous = (
        (np.diff(each.reshape(tiles, tile.vectors, tile.lanes)) == 1).all((1, 2)) for each in (places, offsets)
    )
    reach = np.maximum.reduceat(runs[:, 0], first) + farthest + width
    return Columns(
        np.ascontiguousarray(np.stack([first, last, is_whole, is_contiguous, reach], 1), np.int64),
        np.ascontiguousarray(runs, np.int64),
        np.ascontiguousarray(offsets, np.int64),
        np.ascontiguousarray(places, np.int64),
    )


class Product(NamedTuple):
    """A product that is ready to run."""

    sizes: Sizes
    table: Any
    offsets: Any
    left_offsets: Any
    columns: Columns
    tile: Tile
    dtype: str
    packed_size: int
    chunks: int
    zeros: Any
    chained: bool

    def run(self, out: Any, left: Any, source: Any, bias: Any = None, workspace: Workspace = DIRECT) -> bool:
        """Write the product of `left` and `source` to `out`, plus a number for each row, of all groups: it succeeds."""
        if not COMPILES:
            planned(self, out, left, source, bias)
            return True
        packed = workspace.empty(self.packed_size, np.dtype(self.dtype))
        pack = packed_rows(float_name(left), self.dtype, self.tile.rows)
        workspace.run(pack, packed, left, self.left_offsets, self.table)
        self.run_packed(out, packed, source, self.zeros if bias is None else self._starts(bias, workspace), workspace)
        return True

    def run_packed(self, out: Any, packed: Any, source: Any, starts: Any, workspace: Workspace = DIRECT) -> None:
        """Write the product to `out` from rows that are packed already."""
        kernel = tiled_product(self.dtype, tuple(self.tile), self.chained)
        workspace.run(kernel, out, packed, source, starts, self.offsets, *self.columns, self.table)

    def _starts(self, bias: Any, workspace: Workspace) -> Any:
        """A number for each row of the tiles."""
        groups, rows = self.sizes.groups, self.sizes.row_tiles * self.tile.rows
        dtype = np.dtype(self.dtype)
        if rows == self.sizes.rows and bias.dtype is dtype and bias.flags.c_contiguous:
            return bias
        found = workspace.zeros((groups, rows), dtype)
        workspace.run(np.copyto, found[:, : self.sizes.rows], bias.reshape(groups, self.sizes.rows))
        return found


def plan(
    dtype: str,
    *,
    rows: int,
    offsets: Any,
    left_offsets: Any,
    places: Any,
    column_offsets: Any,
    out_row: int,
    left_row: int,
    limit: int,
    groups: int = 1,
    batches: int = 1,
    last_columns: int | None = None,
    depth_batches: int = 1,
    last_depth: int | None = None,
    out_batch: int = 0,
    out_group: int = 0,
    out_chunk: int = 0,
    source_batch: int = 0,
    source_group: int = 0,
    source_depth_batch: int = 0,
    left_group: int = 0,
    left_depth_batch: int = 0,
    may_split_depth: bool = False,
    chained: bool = False,
    turned: bool = False,
) -> Product:
    """Decide how a product is cut into blocks. Steps and offsets are in elements; see `Sizes` for their meaning.

    `chained`: each element is one chain of fused multiplications and additions, for any processor and any blocks.
    `turned`: the depths of a column are neighbours in the source.
    """
    depth, count = len(offsets), len(column_offsets)
    tile = tile_for(dtype, rows, count)
    if chained:
        tile = tile._replace(fused=True)
    if turned:
        tile = tile._replace(turned=True, in_place=False)
    row_tiles = -(-rows // tile.rows)
    deepest = max(min(DEPTH, _PANEL_ELEMENTS // (row_tiles * tile.rows)), 64)
    depth_blocks = -(-depth // deepest)
    depth_block = -(-depth // depth_blocks)
    tiles = -(-count // tile.columns)
    whole = tiles * batches * groups
    wanted = wanted_units()
    column_blocks = -(-tiles // min(max(whole // wanted, 1), 32, tiles))
    tiles_per_unit = -(-tiles // column_blocks)
    units = column_blocks * batches * groups
    row_blocks = min(max(wanted // 2 // units, 1), row_tiles)
    blocks = depth_blocks * depth_batches
    chunks = 1
    if may_split_depth and whole < 4:  # sums of parts: better than copying the same panels for every row
        # It depends on the shape alone: results must not depend on the number of threads.
        row_blocks = 1
        chunks = min(_CHUNKS // whole, blocks)
    blocks_per_chunk = -(-blocks // chunks)
    chunks = -(-blocks // blocks_per_chunk)
    rows_per_unit = -(-row_tiles // row_blocks)
    row_blocks = -(-row_tiles // rows_per_unit)
    sizes = Sizes(
        units=units * row_blocks * chunks,
        column_blocks=column_blocks,
        row_blocks=row_blocks,
        batches=batches,
        groups=groups,
        tiles_per_unit=tiles_per_unit,
        rows_per_unit=rows_per_unit,
        rows=rows,
        row_tiles=row_tiles,
        columns=count,
        last_columns=count if last_columns is None else last_columns,
        depth=depth,
        last_depth=depth if last_depth is None else last_depth,
        depth_block=depth_block,
        depth_blocks=depth_blocks,
        depth_batches=depth_batches,
        blocks_per_chunk=blocks_per_chunk,
        out_row=out_row,
        out_batch=out_batch,
        out_group=out_group,
        out_chunk=out_chunk,
        source_batch=source_batch,
        source_group=source_group,
        source_depth_batch=source_depth_batch,
        left_row=left_row,
        left_group=left_group,
        left_depth_batch=left_depth_batch,
        limit=limit,
    )
    offsets = np.ascontiguousarray(offsets, np.int64)
    return Product(
        sizes,
        as_array(sizes),
        offsets,
        np.ascontiguousarray(left_offsets, np.int64),
        columns(column_offsets, places, int(offsets.max()), tile),
        tile,
        dtype,
        groups * blocks * row_tiles * depth_block * tile.rows,
        chunks,
        np.zeros(groups * row_tiles * tile.rows, dtype),
        chained,
    )
