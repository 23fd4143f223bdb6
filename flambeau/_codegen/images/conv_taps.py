"""The gradient of a depthwise convolution's weight, for windows of some width: a vector holds a row of the window.

An element of the result's gradient is multiplied by all that its window met, row by row. That fills vectors however
narrow the images are, where sums along the rows of an image would leave most of their lanes empty.
"""

from __future__ import annotations

from typing import NamedTuple

from ..arrays import Arguments, without_lock
from ..build import Builder, Value, Variable
from ..kernel import kernel
from ..products.gemm import Fields
from ..shares import MULTIPLICATIONS, steps_worth
from ..types import SCALARS

TOGETHER = 2
"""Neighbouring positions with sums of their own: a sum that waits for the one before it would take longer."""
_FEW_ROWS = 8
"""With so many rows a window has sums enough of its own."""

_ROWS_TOGETHER = 4


class TapSums(NamedTuple):
    """The numbers of the gradient of a depthwise convolution's weight; steps are in elements."""

    batch: int
    channels: int
    height: int  # of the result's gradient, which is contiguous
    width: int
    source_batch: int
    source_plane: int
    source_row: int
    move_down: int  # from a window to the one below it
    move_across: int


@kernel
def depthwise_tap_sums(
    b: Builder, args: Arguments, dtype: str, rows: int, columns: int, lanes: int, fused: bool, chained: bool
) -> None:
    """The sums of windows of `rows` x `columns`, which are at most `lanes`; `chained`: each is a single one.

    Arguments: the sums (channels, rows, columns), the padded source, of which the last row may be followed by `lanes`
    elements that do not count, the gradient, `TapSums`.
    """
    pointers = [args.array(i).data for i in range(4)]
    sizes = Fields(b, pointers[3], TapSums)
    work = sizes.batch * sizes.height * sizes.width * (rows * lanes)
    with (
        without_lock(b),
        b.parallel(sizes.channels, steps_worth(b, work, MULTIPLICATIONS // 4), *pointers) as (c, begin, end, inside),
        c.loop(begin, end) as channel,
    ):
        _write_channel(c, channel, inside, dtype, (rows, columns, lanes), fused, chained)


def _write_channel(
    b: Builder,
    channel: Value,
    pointers: list[Value],
    dtype: str,
    window: tuple[int, int, int],
    fused: bool,
    chained: bool,
) -> None:
    out, source, grad, table = pointers
    rows, columns, lanes = window
    scalar = SCALARS[dtype]
    sizes = Fields(b, table, TapSums)
    height, width, row_step = sizes.height, sizes.width, sizes.source_row
    down, across = sizes.move_down, sizes.move_across
    zero = b.splat(b.constant(scalar.compute, 0.0), lanes)
    totals, of_image = ([b.variable(scalar.compute, zero, lanes) for _ in range(rows)] for _ in range(2))
    together = TOGETHER if rows < _FEW_ROWS else 1
    sums = [[b.variable(scalar.compute, zero, lanes) for _ in range(rows)] for _ in range(together)]

    def add_window(at: Value, factor: Value, places: list[Variable]) -> None:
        for row, place in enumerate(places):
            met = b.load(at, scalar, row_step * row, lanes)
            place.value = b.fma(met, factor, place.value) if fused else met * factor + place.value

    def add_in_parts(image: Value, slopes: Value) -> None:
        """A few rows are summed before they are added, and so are images: long sums lose more to rounding."""
        for place in of_image:
            place.value = zero
        with b.loop(0, height, _ROWS_TOGETHER) as top:
            for place in [place for each in sums for place in each]:
                place.value = zero
            with b.loop(top, b.smaller(top + _ROWS_TOGETHER, height)) as row:
                first = b.at(image, scalar, row * down)
                line = b.at(slopes, scalar, row * width)
                whole = width // together * together
                for begin, end, count in ((b.integer(0), whole, together), (whole, width, 1)):
                    with b.loop(begin, end, count) as column:
                        for number in range(count):
                            factor = b.splat(b.load(line, scalar, column + number), lanes)
                            add_window(b.at(first, scalar, (column + number) * across), factor, sums[number])
            for total, first_part, *parts in zip(of_image, *sums, strict=True):
                part = first_part.value
                for each in parts:
                    part = part + each.value
                total.value = total.value + part
        for total, part in zip(totals, of_image, strict=True):
            total.value = total.value + part.value

    def add_one_by_one(image: Value, slopes: Value) -> None:
        with b.loop(0, height) as row, b.loop(0, width) as column:
            factor = b.splat(b.load(slopes, scalar, row * width + column), lanes)
            add_window(b.at(image, scalar, row * down + column * across), factor, totals)

    add_image = add_one_by_one if chained else add_in_parts
    with b.loop(0, sizes.batch) as batch:
        image = b.at(source, scalar, batch * sizes.source_batch + channel * sizes.source_plane)
        add_image(image, b.at(grad, scalar, (batch * sizes.channels + channel) * height * width))
    for number, total in enumerate(totals):
        for tap in range(columns):
            b.store(out, scalar, (channel * rows + number) * columns + tap, b.lane(total.value, tap))
