"""A kernel that puts arrays side by side."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder
from ..kernel import kernel
from ..rows.shared import scratch
from ..shares import ELEMENTS, steps_worth
from ..types import I64, POINTER, SCALARS

BYTES = 2 * ELEMENTS
"""What one thread copies at least."""


@kernel
def join_lines(b: Builder, arguments: Arguments) -> None:
    """(out, lines, step, rows, columns, lengths, distances, x, ...): lines of all x joined.

    Each line of `out`, of `step` bytes, is one of every x, one after the other. Planes have `rows` rows of `columns`
    lines. For each x there is the length of its lines in bytes, and how many bytes it is from one plane, row and line
    to the next.
    """
    out = arguments.array(0).data
    lines, step, rows, columns = (arguments.integer(number) for number in range(1, 5))
    lengths, distances, count = arguments.array(5).data, arguments.array(6).data, arguments.count - 7
    grain = steps_worth(b, step, BYTES)
    with scratch(b, SCALARS["int64"], count) as sources:
        with b.loop(0, count) as number:
            b.store_raw(arguments.array(number + 7).data, b.offset(sources, number, POINTER))
        captured = out, step, rows, columns, lengths, distances, count, sources
        with b.parallel(lines, grain, *captured, unlock=True) as (c, begin, end, inside):
            out_, step_, rows_, columns_, lengths_, distances_, count_, sources_ = inside
            with c.loop(begin, end) as line:
                start = c.variable(I64, line * step_)
                row = line // columns_
                place = row // rows_, row % rows_, line % columns_
                with c.loop(0, count_) as number:
                    length = c.load_raw(c.offset(lengths_, number, I64), I64)
                    source = c.load_raw(c.offset(sources_, number, POINTER), POINTER)
                    for axis, position in enumerate(place):
                        distance = c.load_raw(c.offset(distances_, number * len(place) + axis, I64), I64)
                        source = source + position * distance
                    c.call("memcpy", POINTER, [out_ + start.value, source, length])
                    start.add(length)


@kernel
def join_whole(b: Builder, arguments: Arguments) -> None:
    """(out, bytes, lengths, x, ...): `out`, of so many bytes, is every x one after the other, of `lengths` in bytes."""
    out, size, lengths = arguments.array(0).data, arguments.integer(1), arguments.array(2).data
    count = arguments.count - 3
    with scratch(b, SCALARS["int64"], count) as sources:
        with b.loop(0, count) as number:
            b.store_raw(arguments.array(number + 3).data, b.offset(sources, number, POINTER))
        captured = out, lengths, count, sources
        with b.parallel(size, BYTES, *captured, unlock=True) as (c, begin, end, (out_, lengths_, count_, sources_)):
            start = c.variable(I64, 0)
            with c.loop(0, count_) as number:
                first = start.value
                start.add(c.load_raw(c.offset(lengths_, number, I64), I64))
                here, there = c.larger(begin, first), c.smaller(end, start.value)
                with c.when(here < there):
                    source = c.load_raw(c.offset(sources_, number, POINTER), POINTER)
                    c.call("memcpy", POINTER, [out_ + here, source + (here - first), there - here])
