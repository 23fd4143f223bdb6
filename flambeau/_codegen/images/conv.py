"""Images laid out for a convolution: padded with zeros, in the dtype of the sums, neighbours where vectors want it."""

from __future__ import annotations

from typing import NamedTuple

from ..arrays import Arguments, without_lock
from ..build import Builder, Value
from ..kernel import kernel
from ..products.gemm import BLOCK, Fields, transposed
from ..shares import steps_worth
from ..types import SCALARS, Scalar

WIDTH = 16
"""Elements that are copied at a time."""
_PAIRS = 4


class Layout(NamedTuple):
    """How images (batch, channels, depth, height, width) are copied; a kernel reads it in this order.

    Steps are in elements. A planar copy keeps rows: for a convolution that moves by `phases` columns at a time, every
    row becomes that many rows, of its columns 0, phases, 2 phases, ..., then of 1, 1 + phases, ...: columns that meet
    the same weight are neighbours. The other copy has the channels innermost.
    """

    batch: int
    channels: int
    depth: int
    height: int
    width: int
    batch_step: int
    channel_step: int
    depth_step: int
    row_step: int
    column_step: int
    pad_depth: int  # zeros before the first element, of each dimension
    pad_height: int
    pad_width: int
    new_depth: int
    new_height: int
    new_width: int  # of one phase
    phases: int

    @property
    def row(self) -> int:
        """Elements from a row of one channel to the next, in a planar copy."""
        return self.new_width * self.phases

    @property
    def plane(self) -> int:
        """Elements of one channel of one sample."""
        return self.row * self.new_height * self.new_depth


@kernel
def planar_copy(b: Builder, args: Arguments, source_type: str, target_type: str) -> None:
    """Copy images plane by plane. Arguments: target, source, `Layout`."""
    target, source, table = (args.array(i).data for i in range(3))
    layout = Fields(b, table, Layout)
    planes = layout.batch * layout.channels
    grain = steps_worth(b, layout.new_depth * layout.new_height * layout.new_width * layout.phases)
    with (
        without_lock(b),
        b.parallel(planes, grain, target, source, table) as (c, begin, end, inside),
        c.loop(begin, end) as plane,
    ):
        _copy_plane(c, plane, inside, SCALARS[source_type], SCALARS[target_type])


def _copy_plane(b: Builder, plane: Value, pointers: list[Value], memory: Scalar, new: Scalar) -> None:
    target, source, table = pointers
    layout = Fields(b, table, Layout)
    height, width, phases = layout.new_height, layout.new_width, layout.phases
    column_step = layout.column_step
    batch, channel = plane // layout.channels, plane % layout.channels
    start = batch * layout.batch_step + channel * layout.channel_step
    rows = layout.new_depth * height
    with b.loop(0, layout.new_depth) as new_depth, b.loop(0, height) as new_row:
        from_depth, from_row = new_depth - layout.pad_depth, new_row - layout.pad_height
        inside = (from_depth >= 0) & (from_depth < layout.depth) & (from_row >= 0) & (from_row < layout.height)
        begin = start + from_depth * layout.depth_step + from_row * layout.row_step
        line = b.at(target, new, (plane * rows + new_depth * height + new_row) * phases * width)
        from_ = b.at(source, memory, begin)
        with b.either((phases == 1) & (column_step == 1)) as (as_it_is, in_phases):
            with as_it_is:
                first = b.smaller(layout.pad_width, width)
                last = b.larger(b.smaller(layout.width + layout.pad_width, width), first)
                last = b.select(inside, last, first)
                _copy_part(b, b.at(from_, memory, -layout.pad_width), line, (first, last, width), memory, new)
            with in_phases, b.either((phases == 2) & (column_step == 1)) as (in_pairs, one_by_one):
                with in_pairs:
                    _copy_pairs(b, layout, from_, line, inside, memory, new)
                with one_by_one, b.loop(0, phases) as phase:
                    to = b.at(line, new, phase * width)
                    # Column i of this phase is column i * phases + shift of the source.
                    shift = phase - layout.pad_width
                    first = b.smaller(b.larger((phases - 1 - shift) // phases, 0), width)
                    last = b.larger(b.smaller((layout.width - shift + phases - 1) // phases, width), first)
                    last = b.select(inside, last, first)
                    _fill_zeros(b, to, new, b.integer(0), first)
                    here = b.at(from_, memory, shift * column_step)
                    with b.loop(first, last) as i:
                        b.store(to, new, i, b.convert(b.load(here, memory, i * column_step * phases), new.compute))
                    _fill_zeros(b, to, new, last, width)


def _copy_part(
    b: Builder, from_: Value, to: Value, places: tuple[Value, Value, Value], memory: Scalar, new: Scalar
) -> None:
    """Copy a row from its first place to its last, and write zeros before and behind these."""
    first, last, width = places
    _fill_zeros(b, to, new, b.integer(0), first)
    whole = first + (last - first) // WIDTH * WIDTH
    quads = whole + (last - whole) // _PAIRS * _PAIRS
    for begin, end, lanes in ((first, whole, WIDTH), (whole, quads, _PAIRS), (quads, last, 1)):
        with b.loop(begin, end, lanes) as i:
            b.store(to, new, i, b.convert(b.load(from_, memory, i, lanes), new.compute))
    _fill_zeros(b, to, new, last, width)


def _copy_pairs(
    b: Builder, layout: Fields, from_: Value, to: Value, inside: Value, memory: Scalar, new: Scalar
) -> None:
    """Copy a row: its columns with even numbers, counted with the padding, and then those with odd numbers."""
    width, size, pad = layout.new_width, layout.width, layout.pad_width
    odd = b.at(to, new, width)
    before, pairs = (pad + 1) // 2, (size + pad) // 2
    first = b.smaller(before, width)
    last = b.select(inside, b.larger(b.smaller(pairs, width), first), first)
    begin = b.at(from_, memory, -pad)
    for row in (to, odd):
        _fill_zeros(b, row, new, b.integer(0), first)
        _fill_zeros(b, row, new, last, width)
    for i, lanes in b.lanes(first, last, _PAIRS):
        both = b.convert(b.load(begin, memory, i * 2, 2 * lanes), new.compute)
        for start, row in ((0, to), (1, odd)):
            half = b.shuffle(both, None, range(start, 2 * lanes, 2)) if lanes > 1 else b.lane(both, start)
            b.store(row, new, i, half)
    # The first and the last column may be without a partner.
    with b.when(inside & (pad % 2 == 1) & (before <= width)):
        b.store(odd, new, before - 1, b.convert(b.load(from_, memory, 0), new.compute))
    with b.when(inside & ((size + pad) % 2 == 1) & (pairs < width)):
        b.store(to, new, pairs, b.convert(b.load(from_, memory, size - 1), new.compute))


def _fill_zeros(b: Builder, target: Value, scalar: Scalar, begin: Value, end: Value) -> None:
    for i, lanes in b.lanes(begin, end, WIDTH):
        b.store(target, scalar, i, b.splat(b.constant(scalar.compute, 0.0), lanes))


@kernel
def channels_innermost_copy(b: Builder, args: Arguments, source_type: str, target_type: str) -> None:
    """Copy images with the channels innermost. Arguments: target, source, `Layout`."""
    target, source, table = (args.array(i).data for i in range(3))
    layout = Fields(b, table, Layout)
    rows = layout.batch * layout.new_depth * layout.new_height
    grain = steps_worth(b, layout.channels * layout.new_width)
    with (
        without_lock(b),
        b.parallel(rows, grain, target, source, table) as (c, begin, end, inside),
        c.loop(begin, end) as row,
    ):
        _copy_row(c, row, inside, SCALARS[source_type], SCALARS[target_type])


def _copy_row(b: Builder, row: Value, pointers: list[Value], memory: Scalar, new: Scalar) -> None:
    target, source, table = pointers
    layout = Fields(b, table, Layout)
    height, channels, width = layout.new_height, layout.channels, layout.width
    batch, in_sample = row // (height * layout.new_depth), row % (height * layout.new_depth)
    from_depth, from_row = in_sample // height - layout.pad_depth, in_sample % height - layout.pad_height
    inside = (from_depth >= 0) & (from_depth < layout.depth) & (from_row >= 0) & (from_row < layout.height)
    size = layout.new_width * channels
    to = b.at(target, new, row * size)
    first = b.select(inside, layout.pad_width * channels, size)
    last = b.select(inside, first + width * channels, size)
    _fill_zeros(b, to, new, b.integer(0), first)
    _fill_zeros(b, to, new, last, size)
    with b.when(inside):
        start = batch * layout.batch_step + from_depth * layout.depth_step + from_row * layout.row_step
        from_, to = b.at(source, memory, start), b.at(to, new, first)
        column_step, channel_step = layout.column_step, layout.channel_step
        with b.either(channel_step == 1) as (side_by_side, apart):
            with side_by_side, b.loop(0, width) as column:
                here, there = b.at(from_, memory, column * column_step), b.at(to, new, column * channels)
                for i, lanes in b.lanes(0, channels, WIDTH):
                    b.store(there, new, i, b.convert(b.load(here, memory, i, lanes), new.compute))
            with apart:
                whole = b.select(column_step == 1, channels // BLOCK * BLOCK, b.integer(0))
                with b.loop(0, whole, BLOCK) as channel:
                    rows = [b.at(from_, memory, (channel + i) * channel_step) for i in range(BLOCK)]
                    there = b.at(to, new, channel)
                    for column, lanes in b.lanes(0, width, BLOCK):
                        values = [b.convert(b.load(each, memory, column, lanes), new.compute) for each in rows]
                        if lanes == BLOCK:
                            for number, value in enumerate(transposed(b, values)):
                                b.store(there, new, (column + number) * channels, value)
                        else:
                            for number, value in enumerate(values):
                                b.store(there, new, column * channels + number, value)
                with b.loop(whole, channels) as channel:
                    here, there = b.at(from_, memory, channel * channel_step), b.at(to, new, channel)
                    with b.loop(0, width) as column:
                        value = b.load(here, memory, column * column_step)
                        b.store(there, new, column * channels, b.convert(value, new.compute))
