"""Kernels of maximum pooling in two dimensions: the maxima of windows and their places, and the way back.

Of equal elements the first counts, of NaNs the last. Planes lie behind each other (`planes`), or every place holds the
elements of all channels (`channels`). Sizes come as an array of integers, in the order of `Geometry`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from contextlib import contextmanager

from .. import constants
from ..arrays import Arguments
from ..build import Builder, Operand, Value, Variable
from ..ir import ir
from ..kernel import kernel
from ..rows.shared import scratch
from ..shares import ELEMENTS, steps_worth
from ..types import F64, I32, I64, SCALARS, Scalar

FIELDS = (
    "planes", "height", "width", "rows", "columns", "kernel_y", "kernel_x", "stride_y", "stride_x", "pad_y", "pad_x",
    "dilation_y", "dilation_x", "inner_begin", "inner_end",
)  # fmt: skip
"""The sizes: `planes` of height x width become ones of rows x columns. The windows of the columns from `inner_begin` to
`inner_end` (exclusive) lie inside, with room for whole vectors. Of channels, `planes` counts images."""

CHANNELS = 64
"""So many channels of an image are one thread's."""


class Geometry:
    """The sizes inside a function."""

    def __init__(self, c: Builder, pointer: Value) -> None:
        self.c = c
        self.pointer = pointer

    def __getattr__(self, name: str) -> Value:
        return self.c.load_raw(self.c.offset(self.pointer, FIELDS.index(name), I64), I64)


def share(b: Builder, elements: Value) -> Value:
    """How many steps of so many elements one thread should have at least."""
    return steps_worth(b, elements, ELEMENTS // 2)


def clipped(c: Builder, start: Value, length: Value, dilation: Value, size: Value) -> tuple[Value, Value]:
    """The first and the last (exclusive) of the elements start, start + dilation, ... that lie inside."""
    first = c.larger((dilation - 1 - start) // dilation, 0)
    return first, c.smaller((size - start + dilation - 1) // dilation, length)


def overlapping(c: Builder, begin: Value, end: Value, widths: tuple[int, ...]) -> Iterator[tuple[Value, int]]:
    """Loops over a range in vectors of the greatest width that fits into it.

    The last vector may cover elements again that the one before had: only for bodies to which that makes no difference.
    """
    rest = c.variable(I64, begin)
    for width in widths:
        if width == 1:
            with c.loop(rest.value, end) as position:
                yield position, 1
            return
        start = rest.value
        with c.when(end - start >= width):
            with c.loop(start, end, width) as position:
                yield c.smaller(position, end - width), width
            rest.value = end


def _widths(scalar: Scalar) -> tuple[int, ...]:
    return (4, 2, 1) if scalar.compute == F64 else (8, 4, 1)


class _Best:
    """The largest elements so far, in lanes, and how far from the windows' corners they are."""

    def __init__(self, c: Builder, scalar: Scalar, lanes: int, first: Value, indices: bool) -> None:
        self.c = c
        self.index_type = I64 if scalar.compute == F64 else I32
        self.value: Variable = c.variable(scalar.compute, float("-inf"), lanes)
        self.place = c.variable(self.index_type, c.convert(first, self.index_type), lanes) if indices else None

    def see(self, values: Value, distance: Value) -> None:
        """Let further elements compete."""
        c = self.c
        if self.place is None:
            self.value.value = c.maximum(self.value.value, values)
            return
        better = (values > self.value.value) | (values != values)
        self.value.value = c.select(better, values, self.value.value)
        self.place.value = c.select(
            better, c.splat(c.convert(distance, self.index_type), values.lanes), self.place.value
        )

    def store(self, out: Value, places: Value, scalar: Scalar, index: Value, corners: Value) -> None:
        """Write what was found."""
        c = self.c
        c.store(out, scalar, index, self.value.value)
        if self.place is not None:
            c.store(places, SCALARS["int64"], index, c.convert(self.place.value, I64) + corners)


def _every(c: Builder, pointer: Value, scalar: Scalar, index: Value, lanes: int, step: Operand) -> Value:
    """`lanes` elements, each `step` after the one before: 1 or 2 where that is known, then neighbours are read too."""
    if lanes == 1 or (isinstance(step, int) and step == 1):
        return c.load(pointer, scalar, index, lanes)
    if isinstance(step, int):
        return c.shuffle(c.load(pointer, scalar, index, lanes * step), None, range(0, lanes * step, step))
    vector = c.constant(ir.VectorType(scalar.compute, lanes), 0.0)
    for lane in range(lanes):
        element = c.load(pointer, scalar, index + step * lane)
        vector = Value(c, c.ir.insert_element(vector.ir, element.ir, ir.Constant(I32, lane)))
    return vector


@kernel
def max_pool_planes(b: Builder, arguments: Arguments, dtype: str, length: int, step: int, indices: bool) -> None:
    """(out, places, x, geometry).

    `length`, the windows' width, and `step`, from one to the next, are 0 unless known; then windows have no gaps,
    neither in rows nor in columns.
    """
    scalar = SCALARS[dtype]
    captured = [arguments.array(number).data for number in range(4)]
    sizes = Geometry(b, captured[3])
    grain = share(b, sizes.width * sizes.stride_y)
    with b.parallel(sizes.planes * sizes.rows, grain, *captured, unlock=True) as (c, begin, end, inside):
        out, places, x, geometry = inside
        g = Geometry(c, geometry)
        height, width, rows, columns = g.height, g.width, g.rows, g.columns
        stride_x, pad_x = c.integer(step or g.stride_x), g.pad_x
        dilation_y, dilation_x = (c.integer(1), c.integer(1)) if length else (g.dilation_y, g.dilation_x)
        kernel_x, kernel_y = c.integer(length or g.kernel_x), g.kernel_y
        for number, plane, row in _rows_of_planes(c, begin, end, rows):
            top = row * g.stride_y - g.pad_y
            first_y, last_y = clipped(c, top, kernel_y, dilation_y, height)
            source = c.at(x, scalar, plane * height * width)

            def window(
                column: Value,
                lanes: int,
                first_x: Value,
                last_x: Value,
                known: bool,
                top: Value = top,
                first_y: Value = first_y,
                last_y: Value = last_y,
                source: Value = source,
                number: Value = number,
            ) -> None:
                left = column * stride_x - pad_x
                corner = top * width + left
                best = _Best(c, scalar, lanes, first_y * dilation_y * width + first_x * dilation_x, indices)
                with c.loop(first_y, last_y) as y:
                    line = y * dilation_y * width
                    if known:
                        for number_, values in _neighbours(c, source, scalar, corner + line, lanes, length, step):
                            best.see(values, line + number_)
                    else:
                        with c.loop(first_x, last_x) as tap:
                            distance = line + tap * dilation_x
                            best.see(_every(c, source, scalar, corner + distance, lanes, stride_x), distance)
                corners: Value = corner
                if lanes > 1 and indices:
                    corners = c.splat(corner, lanes) + c.splat(stride_x, lanes) * Value(
                        c, ir.Constant(ir.VectorType(I64, lanes), list(range(lanes)))
                    )
                best.store(out, places, scalar, number * columns + column, corners)

            for column, lanes in overlapping(c, g.inner_begin, g.inner_end, _widths(scalar)):
                window(column, lanes, c.integer(0), kernel_x, bool(length))
            for begin_, end_ in ((c.integer(0), g.inner_begin), (g.inner_end, columns)):
                with c.loop(begin_, end_) as column:
                    window(column, 1, *clipped(c, column * stride_x - pad_x, kernel_x, dilation_x, width), False)


def _rows_of_planes(c: Builder, begin: Value, end: Value, rows: Value) -> Iterator[tuple[Value, Value, Value]]:
    """A loop over rows of planes: the number of each, its plane, and its number there; one division for all of them."""
    plane = c.variable(I64, begin // rows)
    row = c.variable(I64, begin - plane.value * rows)
    with c.loop(begin, end) as number:
        yield number, plane.value, row.value
        row.add(1)
        with c.when(row.value == rows):
            row.value = 0
            plane.add(1)


def _neighbours(
    c: Builder, pointer: Value, scalar: Scalar, index: Value, lanes: int, length: int, step: int
) -> Iterator[tuple[int, Value]]:
    """The elements of a line of windows, tap by tap. Two taps at a step of two come from one vector."""
    if lanes == 1 or step == 1:
        for tap in range(length):
            yield tap, c.load(pointer, scalar, index + tap, lanes)
        return
    for tap in range(0, length, 2):
        both = c.load(pointer, scalar, index + tap, lanes * 2)
        for second in range(min(2, length - tap)):
            yield tap + second, c.shuffle(both, None, range(second, lanes * 2, 2))


@kernel
def max_pool_channels(b: Builder, arguments: Arguments, dtype: str, indices: bool) -> None:
    """(out, places, x, geometry, channels)."""
    scalar = SCALARS[dtype]
    captured = [arguments.array(number).data for number in range(4)]
    channels = arguments.integer(4)
    sizes = Geometry(b, captured[3])
    grain = share(b, sizes.width * sizes.stride_y * channels)
    with b.parallel(sizes.planes * sizes.rows, grain, *captured, channels, unlock=True) as (c, begin, end, inside):
        out, places, x, geometry, depth = inside
        g = Geometry(c, geometry)
        height, width, rows, columns = g.height, g.width, g.rows, g.columns
        dilation_y, dilation_x = g.dilation_y, g.dilation_x
        with c.loop(begin, end) as number:
            image = number // rows
            top = (number - image * rows) * g.stride_y - g.pad_y
            first_y, last_y = clipped(c, top, g.kernel_y, dilation_y, height)
            source = c.at(x, scalar, image * height * width * depth)
            with c.loop(0, columns) as column:
                left = column * g.stride_x - g.pad_x
                first_x, last_x = clipped(c, left, g.kernel_x, dilation_x, width)
                corner = top * width + left
                begin_of = (number * columns + column) * depth
                for channel, lanes in c.lanes(0, depth, 4 if scalar.compute == F64 else 8):
                    best = _Best(c, scalar, lanes, first_y * dilation_y * width + first_x * dilation_x, indices)
                    with c.loop(first_y, last_y) as y, c.loop(first_x, last_x) as tap:
                        distance = y * dilation_y * width + tap * dilation_x
                        best.see(c.load(source, scalar, (corner + distance) * depth + channel, lanes), distance)
                    best.store(out, places, scalar, begin_of + channel, corner)


# ----- the way back --------------------------------------------------------------------------------------------------


def wide_enough(scalar: Scalar) -> Scalar:
    """The type in which sums are kept."""
    return scalar if scalar.memory == scalar.compute else SCALARS["float32"]


def zeros(c: Builder, scalar: Scalar, lanes: int) -> Value:
    """Zero, or a vector of zeros."""
    return c.constant(constants.vector(scalar.compute, lanes), 0.0)


@contextmanager
def _sums_of_plane(c: Builder, scalar: Scalar, target: Value, area: Value) -> Iterator[tuple[Value, Scalar]]:
    """Zeros to add to, and their type: in `target`, or where that is of half precision in float32 first."""
    kept = wide_enough(scalar)
    if kept is scalar:
        for position, lanes in c.lanes(0, area, 16):
            c.store(target, scalar, position, zeros(c, scalar, lanes))
        yield target, scalar
        return
    with scratch(c, kept, area) as sums:
        for position, lanes in c.lanes(0, area, 16):
            c.store(sums, kept, position, zeros(c, kept, lanes))
        yield sums, kept
        for position, lanes in c.lanes(0, area, 16):
            c.store(target, scalar, position, c.load(sums, kept, position, lanes))


@contextmanager
def sums_of_channels(
    c: Builder, scalar: Scalar, target: Value, area: Value, channels: Value, depth: Value
) -> Iterator[tuple[Value, Scalar, Value]]:
    """Zeros to add to for `depth` of the channels, their type, and how far places lie apart."""
    kept = wide_enough(scalar)
    if kept is scalar:
        for place, channel, lanes in _everywhere(c, area, depth):
            c.store(target, scalar, place * channels + channel, zeros(c, scalar, lanes))
        yield target, scalar, channels
        return
    with scratch(c, kept, area * depth) as sums:
        for position, lanes in c.lanes(0, area * depth, 16):
            c.store(sums, kept, position, zeros(c, kept, lanes))
        yield sums, kept, depth
        for place, channel, lanes in _everywhere(c, area, depth):
            value = c.load(sums, kept, place * depth + channel, lanes)
            c.store(target, scalar, place * channels + channel, value)


def _everywhere(c: Builder, area: Value, depth: Value) -> Iterator[tuple[Value, Value, int]]:
    """Loops over all places and channels."""
    with c.loop(0, area) as place:
        for channel, lanes in c.lanes(0, depth, 16):
            yield place, channel, lanes


def _any_outside(places: list[Value], count: Value) -> Value:
    """Whether one of the places is not among `count` ones."""
    for place in places:
        place.signed = False  # negative ones are large then
    return functools.reduce(operator.or_, [place >= count for place in places])


@kernel
def max_pool_backward_planes(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(result, grad, places, wrong, planes, area, count): `wrong` becomes 1 if a place is none of its plane."""
    scalar, wide = SCALARS[dtype], SCALARS["int64"]
    captured = [arguments.array(number).data for number in range(4)]
    planes, area, count = (arguments.integer(number) for number in range(4, 7))
    captured += [area, count]
    with b.parallel(planes, share(b, area), *captured, unlock=True) as (c, begin, end, inside):
        result, grad, places, wrong, area_, count_ = inside
        with c.loop(begin, end) as plane:
            target = c.at(result, scalar, plane * area_)
            with _sums_of_plane(c, scalar, target, area_) as (sums, kept):
                for position, several in c.lanes(plane * count_, (plane + 1) * count_, 4):
                    found = [c.load(places, wide, position + each) for each in range(several)]
                    with c.either(_any_outside(found, area_)) as (some, none):
                        with some:
                            c.store(wrong, wide, 0, 1)
                        with none:
                            for each, place in enumerate(found):
                                value = c.load(sums, kept, place) + c.load(grad, scalar, position + each)
                                c.store(sums, kept, place, value)


@kernel
def max_pool_backward_channels(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(result, grad, places, wrong, images, area, count, channels): the same with the channels innermost."""
    scalar, number = SCALARS[dtype], SCALARS["int64"]
    captured = [arguments.array(position).data for position in range(4)]
    images, area, count, channels = (arguments.integer(position) for position in range(4, 8))
    blocks = (channels + (CHANNELS - 1)) // CHANNELS
    captured += [area, count, channels, blocks]
    grain = share(b, area * b.smaller(channels, CHANNELS))
    with b.parallel(images * blocks, grain, *captured, unlock=True) as (c, begin, end, inside):
        result, grad, places, wrong, area_, count_, channels_, blocks_ = inside
        with c.loop(begin, end) as block:
            image = block // blocks_
            start = (block - image * blocks_) * CHANNELS
            depth = c.smaller(channels_ - start, CHANNELS)
            target = c.at(result, scalar, image * area_ * channels_ + start)
            sums_of_block = sums_of_channels(c, scalar, target, area_, channels_, depth)
            with sums_of_block as (sums, kept, step), c.loop(0, count_) as window:
                line = (image * count_ + window) * channels_ + start
                for channel, several in c.lanes(0, depth, 4):
                    found = [c.load(places, number, line + channel + each) for each in range(several)]
                    with c.either(_any_outside(found, area_)) as (some, none):
                        with some:
                            c.store(wrong, number, 0, 1)
                        with none:
                            for each, place in enumerate(found):
                                at = place * step + (channel + each)
                                value = c.load(sums, kept, at) + c.load(grad, scalar, line + channel + each)
                                c.store(sums, kept, at, value)
