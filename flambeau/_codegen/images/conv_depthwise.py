"""Convolutions in which every channel has a kernel of its own: nothing to share, so nothing is packed."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..arrays import Arguments, without_lock
from ..build import Builder, Value, Variable
from ..kernel import kernel
from ..products.gemm import Fields, Tile, integer_at
from ..shares import MULTIPLICATIONS, steps_worth
from ..types import SCALARS

ROWS = 4
"""Rows of an image that are computed at the same time."""


class Depthwise(NamedTuple):
    """The numbers of a depthwise convolution of planar images; steps are in elements."""

    batch: int
    channels: int
    taps: int
    depth: int  # of the result, as all sizes
    height: int
    width: int
    source_batch: int
    source_plane: int
    source_depth: int
    source_row: int
    out_batch: int
    out_plane: int
    out_depth: int
    out_row: int


def _planes_worth(b: Builder, sizes: Fields) -> Value:
    return steps_worth(b, sizes.taps * sizes.depth * sizes.height * sizes.width, MULTIPLICATIONS // 4)


@kernel
def depthwise(b: Builder, args: Arguments, dtype: str, tile: tuple[Any, ...]) -> None:
    """Rows of a result at least as wide as a vector.

    Arguments: the result, the source, weights (channels, taps), a start for each channel, the taps' offsets,
    `Depthwise`.
    """
    pointers = [args.array(i).data for i in range(6)]
    sizes = Fields(b, pointers[5], Depthwise)
    with (
        without_lock(b),
        b.parallel(sizes.batch * sizes.channels, _planes_worth(b, sizes), *pointers) as (c, begin, end, inside),
        c.loop(begin, end) as plane,
    ):
        _write_plane(c, plane, inside, dtype, Tile(*tile))


def _write_plane(b: Builder, plane: Value, pointers: list[Value], dtype: str, tile: Tile) -> None:
    out, source, weights, starts, offsets, table = pointers
    scalar, lanes = SCALARS[dtype], tile.lanes
    sizes = Fields(b, table, Depthwise)
    batch, channel, taps, width = plane // sizes.channels, plane % sizes.channels, sizes.taps, sizes.width
    source = b.at(source, scalar, batch * sizes.source_batch + channel * sizes.source_plane)
    out = b.at(out, scalar, batch * sizes.out_batch + channel * sizes.out_plane)
    weights = b.at(weights, scalar, channel * taps)
    start = b.splat(b.load(starts, scalar, channel), lanes)

    def rows_of(from_: Value, to: Value, count: int) -> None:
        """Compute `count` rows, vector by vector; the last vector may repeat some of the one before."""
        with b.loop(0, width, lanes) as column:
            at = b.smaller(column, width - lanes)
            sums = [b.variable(scalar.compute, start, lanes) for _ in range(count)]
            first = [b.at(from_, scalar, sizes.source_row * row + at) for row in range(count)]
            with b.loop(0, taps) as tap:
                weight = b.splat(b.load(weights, scalar, tap), lanes)
                offset = integer_at(b, offsets, tap)
                for total, place in zip(sums, first, strict=True):
                    total.value = _multiplied(b, tile, b.load(place, scalar, offset, lanes), weight, total.value)
            for row, total in enumerate(sums):
                b.store(to, scalar, sizes.out_row * row + at, total.value)

    with b.loop(0, sizes.depth) as depth:
        from_ = b.at(source, scalar, depth * sizes.source_depth)
        to = b.at(out, scalar, depth * sizes.out_depth)
        whole = sizes.height // ROWS * ROWS
        for begin, end, count in ((b.integer(0), whole, ROWS), (whole, sizes.height, 1)):
            with b.loop(begin, end, count) as row:
                rows_of(b.at(from_, scalar, row * sizes.source_row), b.at(to, scalar, row * sizes.out_row), count)


def _multiplied(b: Builder, tile: Tile, left: Value, right: Value, more: Value) -> Value:
    return b.fma(left, right, more) if tile.fused else left * right + more


@kernel
def depthwise_weights(b: Builder, args: Arguments, dtype: str, tile: tuple[Any, ...]) -> None:
    """The sums, for each channel and tap, of the products of a result's gradient and what the tap met.

    Arguments: the sums (channels, taps), the source, the gradient, the taps' offsets, `Depthwise`, in which "out" is
    the gradient.
    """
    pointers = [args.array(i).data for i in range(5)]
    sizes = Fields(b, pointers[4], Depthwise)
    with (
        without_lock(b),
        b.parallel(sizes.channels, _planes_worth(b, sizes), *pointers) as (c, begin, end, inside),
        c.loop(begin, end) as channel,
        c.loop(0, Fields(c, inside[4], Depthwise).taps) as tap,
    ):
        _write_sum(c, channel, tap, inside, dtype, Tile(*tile))


def _write_sum(b: Builder, channel: Value, tap: Value, pointers: list[Value], dtype: str, tile: Tile) -> None:
    out, source, grad, offsets, table = pointers
    scalar, lanes = SCALARS[dtype], tile.lanes
    sizes = Fields(b, table, Depthwise)
    source = b.at(source, scalar, channel * sizes.source_plane + integer_at(b, offsets, tap))
    grad = b.at(grad, scalar, channel * sizes.out_plane)
    sums = [b.variable(scalar.compute, b.splat(b.constant(scalar.compute, 0.0), lanes), lanes) for _ in range(ROWS)]
    rest = b.variable(scalar.compute, 0.0)

    def rows_of(left: Value, right: Value, totals: list[Variable]) -> None:
        for column, width in b.lanes(0, sizes.width, lanes):
            for row, total in enumerate(totals):
                one = b.load(left, scalar, sizes.source_row * row + column, width)
                two = b.load(right, scalar, sizes.out_row * row + column, width)
                place = total if width == lanes else rest
                place.value = _multiplied(b, tile, one, two, place.value)

    with b.loop(0, sizes.batch) as batch, b.loop(0, sizes.depth) as depth:
        left = b.at(source, scalar, batch * sizes.source_batch + depth * sizes.source_depth)
        right = b.at(grad, scalar, batch * sizes.out_batch + depth * sizes.out_depth)
        whole = sizes.height // ROWS * ROWS
        for begin, end, count in ((b.integer(0), whole, ROWS), (whole, sizes.height, 1)):
            with b.loop(begin, end, count) as row:
                rows_of(
                    b.at(left, scalar, row * sizes.source_row), b.at(right, scalar, row * sizes.out_row), sums[:count]
                )
    total = b.total(sums[0].value + sums[1].value + (sums[2].value + sums[3].value))
    b.store(out, scalar, channel * sizes.taps + tap, total + rest.value)
