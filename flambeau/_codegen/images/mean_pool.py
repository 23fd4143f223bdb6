"""Kernels of average pooling in two dimensions, of windows that lie anywhere, and the way back.

Tables say of every window along a dimension where it begins, where it ends (exclusive), and by how many elements it
counts: the sum over a window is divided by the product of both counts. Planes lie behind each other (`planes`), or
every place holds the elements of all channels (`channels`).
"""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..rows.shared import scratch
from ..types import F64, I64, SCALARS, Scalar
from .max_pool import CHANNELS, overlapping, share, sums_of_channels, wide_enough, zeros

BEGIN, END, COUNT = range(3)
"""The lines of a table, each as long as there are windows."""


class _Windows:
    """The windows along one dimension."""

    def __init__(self, c: Builder, table: Value, number: Value) -> None:
        self.c = c
        self.table = table
        self.number = number

    def __getitem__(self, window: Value) -> tuple[Value, Value]:
        """Where a window begins and ends."""
        return self._entry(BEGIN, window), self._entry(END, window)

    def count(self, window: Value) -> Value:
        return self._entry(COUNT, window)

    def _entry(self, line: int, window: Value) -> Value:
        return self.c.load_raw(self.c.offset(self.table, self.number * line + window, I64), I64)


def _divisor(c: Builder, scalar: Scalar, first: Value, second: Value) -> Value:
    return c.convert(first * second, scalar.compute)


@kernel
def mean_pool_planes(b: Builder, arguments: Arguments, dtype: str, length: int, step: int) -> None:
    """(out, x, rows' table, columns' table, planes, height, width, rows, columns, inner_begin, inner_end).

    The windows of the columns from `inner_begin` to `inner_end` (exclusive) are `length` wide and `step` apart, count
    alike and have an element behind them; there are none of them if these are 0.
    """
    b.want_all_passes()
    scalar = SCALARS[dtype]
    kept = wide_enough(scalar)
    captured = [arguments.array(number).data for number in range(4)]
    planes, *sizes = (arguments.integer(number) for number in range(4, 11))
    captured += sizes
    height, width, rows, _, _, _ = sizes
    grain = share(b, height * width // b.larger(rows, 1))
    with b.parallel(planes * rows, grain, *captured, unlock=True) as (c, begin, end, inside):
        out, x, row_table, column_table, height_, width_, rows_, columns, inner_begin, inner_end = inside
        lines, across = _Windows(c, row_table, rows_), _Windows(c, column_table, columns)
        with scratch(c, kept, width_) as sums, c.loop(begin, end) as number:
            plane = number // rows_
            row = number - plane * rows_
            top, bottom = lines[row]
            source = c.at(x, scalar, (plane * height_ + top) * width_)
            for column, lanes in overlapping(c, c.integer(0), width_, _widths(scalar)):
                total = c.variable(scalar.compute, 0.0, lanes)
                with c.loop(0, bottom - top) as line:
                    total.add(c.load(source, scalar, line * width_ + column, lanes))
                c.store(sums, kept, column, total.value)
            count = lines.count(row)
            if length:
                divisor = _divisor(c, scalar, count, across.count(inner_begin))
                for column, lanes in overlapping(c, inner_begin, inner_end, _widths(scalar)):
                    left, _ = across[column]
                    total_ = _along(c, sums, kept, left, lanes, length, step)
                    c.store(out, scalar, number * columns + column, total_ / divisor)
            for first, last in ((c.integer(0), inner_begin), (inner_end, columns)):
                with c.loop(first, last) as column:
                    left, right = across[column]
                    single = c.variable(scalar.compute, 0.0)
                    with c.loop(left, right) as place:
                        single.add(c.load(sums, kept, place))
                    divisor = _divisor(c, scalar, count, across.count(column))
                    c.store(out, scalar, number * columns + column, single.value / divisor)


def _widths(scalar: Scalar) -> tuple[int, ...]:
    return (8, 2, 1) if scalar.compute == F64 else (16, 4, 1)


def _along(c: Builder, sums: Value, kept: Scalar, left: Value, lanes: int, length: int, step: int) -> Value:
    """The sums of `lanes` windows of `length` elements, `step` apart: 1 or 2."""
    total = zeros(c, kept, lanes)
    if lanes == 1 or step == 1:
        for tap in range(length):
            total = total + c.load(sums, kept, left + tap, lanes)
        return total
    for tap in range(0, length, 2):
        both = c.load(sums, kept, left + tap, 2 * lanes)
        for each in range(min(2, length - tap)):
            total = total + c.shuffle(both, None, range(each, 2 * lanes, 2))
    return total


@kernel
def mean_pool_backward_planes(b: Builder, arguments: Arguments, dtype: str, length: int) -> None:
    """(result, grad, rows' table, columns' table, planes, height, width, rows, columns).

    With a `length`, all windows are so wide, next to each other, inside, and count alike.
    """
    scalar = SCALARS[dtype]
    kept = wide_enough(scalar)
    captured = [arguments.array(number).data for number in range(4)]
    planes, *sizes = (arguments.integer(number) for number in range(4, 9))
    captured += sizes
    with b.parallel(planes, share(b, sizes[0] * sizes[1]), *captured, unlock=True) as (c, begin, end, inside):
        result, grad, row_table, column_table, height, width, rows, columns = inside
        lines, across = _Windows(c, row_table, rows), _Windows(c, column_table, columns)
        area = height * width

        def spread(target: Value, plane: Value, line_of_sums: Value) -> None:
            filled = c.variable(I64, 0)
            with c.loop(0, rows) as row:
                top, bottom = lines[row]
                count, source = lines.count(row), c.at(grad, scalar, (plane * rows + row) * columns)
                _spread_line(c, line_of_sums, source, scalar, kept, across, width, columns, count, length)
                for position, lanes in c.lanes(filled.value * width, top * width, 16):  # between windows
                    c.store(target, kept, position, zeros(c, kept, lanes))
                with c.loop(top, bottom) as line:
                    start = line * width
                    with c.either(line < filled.value) as (again, new):
                        with again:
                            for column, lanes in c.lanes(0, width, 16):
                                value = c.load(target, kept, start + column, lanes)
                                value = value + c.load(line_of_sums, kept, column, lanes)
                                c.store(target, kept, start + column, value)
                        with new:
                            for column, lanes in overlapping(c, c.integer(0), width, _widths(scalar)):
                                c.store(target, kept, start + column, c.load(line_of_sums, kept, column, lanes))
                filled.value = c.larger(filled.value, bottom)
            for position, lanes in c.lanes(filled.value * width, area, 16):
                c.store(target, kept, position, zeros(c, kept, lanes))

        with scratch(c, kept, width) as sums:
            if kept is scalar:
                with c.loop(begin, end) as plane:
                    spread(c.at(result, scalar, plane * area), plane, sums)
            else:
                with scratch(c, kept, area) as wide, c.loop(begin, end) as plane:
                    spread(wide, plane, sums)
                    for position, lanes in c.lanes(0, area, 16):
                        c.store(result, scalar, plane * area + position, c.load(wide, kept, position, lanes))


def _spread_line(
    c: Builder, sums: Value, source: Value, scalar: Scalar, kept: Scalar, across: _Windows, width: Value,
    columns: Value, count: Value, length: int,
) -> None:  # fmt: skip
    """For each column the sum of what the windows of one row, which it is in, hand to it."""
    if length:
        divisor = _divisor(c, scalar, count, across.count(c.integer(0)))
        for column, lanes in overlapping(c, c.integer(0), columns, _widths(scalar)):
            value = c.load(source, scalar, column, lanes) / divisor
            if lanes > 1:
                value = c.shuffle(value, None, [lane // length for lane in range(lanes * length)])
                c.store(sums, kept, column * length, value)
            else:
                for each in range(length):
                    c.store(sums, kept, column * length + each, value)
        with c.loop(columns * length, width) as column:
            c.store(sums, kept, column, 0.0)
        return
    for column, lanes in c.lanes(0, width, 16):
        c.store(sums, kept, column, zeros(c, kept, lanes))
    with c.loop(0, columns) as column:
        left, right = across[column]
        value = c.load(source, scalar, column) / _divisor(c, scalar, count, across.count(column))
        with c.loop(left, right) as place:
            c.store(sums, kept, place, c.load(sums, kept, place) + value)


@kernel
def mean_pool_channels(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(out, x, rows' table, columns' table, images, height, width, rows, columns, channels)."""
    scalar = SCALARS[dtype]
    captured = [arguments.array(number).data for number in range(4)]
    images, *sizes = (arguments.integer(number) for number in range(4, 10))
    captured += sizes
    height, width, rows, _, channels = sizes
    grain = share(b, height * width * channels // b.larger(rows, 1))
    with b.parallel(images * rows, grain, *captured, unlock=True) as (c, begin, end, inside):
        out, x, row_table, column_table, height_, width_, rows_, columns, depth = inside
        lines, across = _Windows(c, row_table, rows_), _Windows(c, column_table, columns)
        with c.loop(begin, end) as number:
            image = number // rows_
            row = number - image * rows_
            top, bottom = lines[row]
            count = lines.count(row)
            with c.loop(0, columns) as column:
                left, right = across[column]
                divisor = _divisor(c, scalar, count, across.count(column))
                for channel, lanes in c.lanes(0, depth, _widths(scalar)[0]):
                    total = c.variable(scalar.compute, 0.0, lanes)
                    with c.loop(top, bottom) as line, c.loop(left, right) as place:
                        position = ((image * height_ + line) * width_ + place) * depth
                        total.add(c.load(x, scalar, position + channel, lanes))
                    c.store(out, scalar, (number * columns + column) * depth + channel, total.value / divisor)


@kernel
def mean_pool_backward_channels(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(result, grad, rows' table, columns' table, images, height, width, rows, columns, channels)."""
    scalar = SCALARS[dtype]
    captured = [arguments.array(number).data for number in range(4)]
    images, *sizes = (arguments.integer(number) for number in range(4, 10))
    channels = sizes[-1]
    blocks = (channels + (CHANNELS - 1)) // CHANNELS
    captured += [*sizes, blocks]
    grain = share(b, sizes[0] * sizes[1] * b.smaller(channels, CHANNELS))
    with b.parallel(images * blocks, grain, *captured, unlock=True) as (c, begin, end, inside):
        result, grad, row_table, column_table, height, width, rows, columns, channels_, blocks_ = inside
        lines, across = _Windows(c, row_table, rows), _Windows(c, column_table, columns)
        area = height * width
        with c.loop(begin, end) as block:
            image = block // blocks_
            start = (block - image * blocks_) * CHANNELS
            depth = c.smaller(channels_ - start, CHANNELS)
            target = c.at(result, scalar, image * area * channels_ + start)
            source = c.at(grad, scalar, image * rows * columns * channels_ + start)
            sums_of_block = sums_of_channels(c, scalar, target, area, channels_, depth)
            with sums_of_block as (sums, kept, step), c.loop(0, rows) as row, c.loop(0, columns) as column:
                (top, bottom), (left, right) = lines[row], across[column]
                divisor = _divisor(c, scalar, lines.count(row), across.count(column))
                for channel, lanes in c.lanes(0, depth, _widths(scalar)[0]):
                    value = c.load(source, scalar, (row * columns + column) * channels_ + channel, lanes) / divisor
                    with c.loop(top, bottom) as line, c.loop(left, right) as place:
                        at = (line * width + place) * step + channel
                        c.store(sums, kept, at, c.load(sums, kept, at, lanes) + value)
