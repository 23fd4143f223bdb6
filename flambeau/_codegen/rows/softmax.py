"""Kernels of softmax and log_softmax and of their derivatives.

Rows that are contiguous and long enough are gone through with vectors of neighbours. Short ones are gathered into
vectors of which each lane has a row of its own. Along other dimensions neighbouring columns lie in the lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from ..arrays import Arguments
from ..build import Builder, Operand, Value
from ..functions.coefficients import EXP
from ..functions.logarithm import log
from ..functions.parts import format_of, polynomial
from ..kernel import kernel
from ..types import F64, SCALARS, Scalar, float32, float64
from .shared import LINES, highest, load_lanes, rows_per_share, scratch, steps, store_lanes, totals, wide_of, width_of

_LOG2_HIGH = (0.693145751953125, 0.693147180559663)
_LOG2_LOW = (1.4286068203094172e-06, 2.8235290563031577e-13)
"""log(2) as a sum: the first part, here for float32 and float64, has so few digits that its products are exact."""


def exp(c: Builder, x: Value) -> Value:
    """exp of what is not, or hardly, above 0, in half the steps: results below the normal numbers are 0."""
    form = format_of(x)
    x = c.maximum(x, form.pick(-88.0, -709.0))  # to where the exponent's bits become 0
    whole = form.whole + form.bias  # the sum's last bits are then those of the result's exponent
    shifted = c.fma(x, 1 / math.log(2), whole)
    power = shifted - whole
    rest = c.fma(power, -form.pick(*_LOG2_HIGH), x)
    rest = c.fma(power, -form.pick(*_LOG2_LOW), rest)
    value = c.fma(rest * rest, polynomial(c, rest, form.of(EXP)), rest) + 1.0
    return value * c.bits(c.bits(shifted, form.integer) << form.digits, form.element)


def _log_of_total(c: Builder, total: Value, scalar: Scalar) -> Value:
    return c.convert(log(c, total), scalar.compute)


def row_parts(
    c: Builder, source: Value, scalar: Scalar, length: Value, powers: Value | None = None, work: Scalar = float32
) -> tuple[Value, Value]:
    """The largest element of a row and, in float64, the sum of the exponentials of the differences to it.

    The exponentials are kept in `powers`, of the type `work`, if that is given.
    """
    width = width_of(scalar)
    top = highest(c, 0, length, width, scalar, lambda i, n: c.load(source, scalar, i, n))

    def power(i: Value, lanes: int) -> list[Value]:
        value = exp(c, c.load(source, scalar, i, lanes) - top)
        if powers is not None:
            c.store(powers, work, i, value)
        return [value]

    (total,) = totals(c, 0, length, width, scalar, 1, power)
    return top, total


@kernel
def softmax_rows(b: Builder, arguments: Arguments, dtype: str, logarithm: bool) -> None:
    """(out, x, rows, length)."""
    scalar = SCALARS[dtype]
    out, x = arguments.array(0).data, arguments.array(1).data
    rows, length = arguments.integer(2), arguments.integer(3)
    # Half precision keeps the exponentials in float32 until they are divided.
    own = scalar.memory == scalar.compute or logarithm
    work = scalar if own else float32
    with b.parallel(rows, rows_per_share(b, length), out, x, length, unlock=True) as (c, begin, end, inside):
        out, x, length = inside

        def run(room: Value | None) -> None:
            with c.loop(begin, end) as row:
                source, target = c.at(x, scalar, row * length), c.at(out, scalar, row * length)
                powers = None if logarithm else target if room is None else room
                top, total = row_parts(c, source, scalar, length, powers, work)
                if logarithm:
                    shift = _log_of_total(c, total, scalar)
                    for i, lanes in c.lanes(0, length, width_of(scalar)):
                        c.store(target, scalar, i, c.load(source, scalar, i, lanes) - top - shift)
                elif powers is not None:
                    factor = c.convert(1.0 / total, scalar.compute)
                    for i, lanes in c.lanes(0, length, width_of(scalar)):
                        c.store(target, scalar, i, c.load(powers, work, i, lanes) * factor)

        if own:
            run(None)
        else:
            with scratch(c, float32, length) as room:
                run(room)


@kernel
def softmax_rows_backward(b: Builder, arguments: Arguments, dtype: str, logarithm: bool) -> None:
    """(of_x, grad, result, rows, length)."""
    scalar = SCALARS[dtype]
    pointers = [arguments.array(number).data for number in range(3)]
    rows, length = arguments.integer(3), arguments.integer(4)
    with b.parallel(rows, rows_per_share(b, length), *pointers, length, unlock=True) as (c, begin, end, inside):
        of_x, grad, result, length = inside
        with c.loop(begin, end) as row:
            coming, values, target = (c.at(each, scalar, row * length) for each in (grad, result, of_x))

            def term(i: Value, lanes: int) -> list[Value]:
                value = c.load(coming, scalar, i, lanes)
                return [value if logarithm else value * c.load(values, scalar, i, lanes)]

            (total,) = totals(c, 0, length, width_of(scalar), scalar, 1, term)
            total = c.convert(total, scalar.compute)
            for i, lanes in c.lanes(0, length, width_of(scalar, 2)):
                value, own = c.load(coming, scalar, i, lanes), c.load(values, scalar, i, lanes)
                c.store(target, scalar, i, value - exp(c, own) * total if logarithm else (value - total) * own)


# ----- short rows, each in a lane of its own -----------------------------------------------------------------------


class Lanes:
    """Rows of `length` elements in the lanes of vectors, which are gathered."""

    def __init__(self, scalar: Scalar, row: Value, lanes: int, length: Value) -> None:
        self.scalar = scalar
        self.row = row
        self.lanes = lanes
        self.length = length

    def load(self, c: Builder, pointer: Value, j: Value) -> Value:
        """Element `j` of each row."""
        return load_lanes(c, pointer, self.scalar, self.row * self.length + j, self.lanes, self.length)

    def store(self, c: Builder, pointer: Value, j: Value, value: Value) -> None:
        store_lanes(c, pointer, self.scalar, self.row * self.length + j, value, self.length)


def for_short_rows(
    b: Builder, scalar: Scalar, pointers: list[Value], rows: Value, length: Value
) -> Iterator[tuple[Builder, list[Value], Lanes]]:
    """Write a body for some rows at a time. It gets its builder, the pointers, and the rows at hand."""
    with b.parallel(rows, rows_per_share(b, length), *pointers, length, unlock=True) as (c, begin, end, inside):
        for row, lanes in c.lanes(begin, end, width_of(scalar, 2)):
            yield c, inside[:-1], Lanes(scalar, row, lanes, inside[-1])


def lane_parts(c: Builder, x: Value, rows: Lanes, powers: Value | None = None) -> tuple[Value, Value]:
    """`row_parts` of several rows. The exponentials are kept in `powers`, which is like `x`, if that is given."""
    top = c.variable(rows.scalar.compute, float("-inf"), rows.lanes)
    with c.loop(0, rows.length) as j:
        top.value = c.maximum(top.value, rows.load(c, x, j))
    largest = top.value
    total = c.variable(F64, 0.0, rows.lanes)
    with c.loop(0, rows.length) as j:
        power = exp(c, rows.load(c, x, j) - largest)
        if powers is not None:
            rows.store(c, powers, j, power)
        total.add(c.convert(power, F64))
    return largest, total.value


@kernel
def softmax_short_rows(b: Builder, arguments: Arguments, dtype: str, logarithm: bool) -> None:
    """(out, x, rows, length)."""
    scalar = SCALARS[dtype]
    pointers = [arguments.array(number).data for number in range(2)]
    keeps = scalar.memory == scalar.compute and not logarithm
    for c, (out, x), rows in for_short_rows(b, scalar, pointers, arguments.integer(2), arguments.integer(3)):
        top, total = lane_parts(c, x, rows, out if keeps else None)
        shift = _log_of_total(c, total, scalar) if logarithm else None
        factor = c.convert(1.0 / total, scalar.compute)
        with c.loop(0, rows.length) as j:
            if shift is not None:
                value = rows.load(c, x, j) - top - shift
            elif keeps:
                value = rows.load(c, out, j) * factor
            else:
                value = exp(c, rows.load(c, x, j) - top) * factor
            rows.store(c, out, j, value)


@kernel
def softmax_short_rows_backward(b: Builder, arguments: Arguments, dtype: str, logarithm: bool) -> None:
    """(of_x, grad, result, rows, length)."""
    scalar = SCALARS[dtype]
    pointers = [arguments.array(number).data for number in range(3)]
    sizes = arguments.integer(3), arguments.integer(4)
    for c, (of_x, grad, result), rows in for_short_rows(b, scalar, pointers, *sizes):
        sum_ = c.variable(F64, 0.0, rows.lanes)
        with c.loop(0, rows.length) as j:
            value = rows.load(c, grad, j)
            sum_.add(c.convert(value if logarithm else value * rows.load(c, result, j), F64))
        total = c.convert(sum_.value, scalar.compute)
        with c.loop(0, rows.length) as j:
            value, own = rows.load(c, grad, j), rows.load(c, result, j)
            rows.store(c, of_x, j, value - exp(c, own) * total if logarithm else (value - total) * own)


# ----- dimensions that are not the last ----------------------------------------------------------------------------

TILE = 512
"""So many neighbouring columns are gone through together: short enough for the stack, long enough for the memory."""


class Tile:
    """Neighbouring columns of (outer, length, inner), from an address on, `inner` elements from line to line."""

    def __init__(self, c: Builder, scalar: Scalar, first: Value, count: Value, length: Value, inner: Value) -> None:
        self.c = c
        self.scalar = scalar
        self.first = first
        self.count = count
        self.length = length
        self.inner = inner

    def once(self) -> Iterator[tuple[Value, int]]:
        """Write a body for vectors of columns; it gets their number within the tile and their width."""
        yield from steps(self.c, 0, self.count, width_of(self.scalar), width_of(self.scalar, 1))

    def each(self, begin: Operand = 0, end: Value | None = None, step: int = 1) -> Iterator[tuple[Value, Value, int]]:
        """Write a body for all elements, line by line; it gets position, column within the tile, and width.

        With a `step` the body is for so many lines at a time, as far as they go.
        """
        with self.c.loop(begin, self.length if end is None else end, step) as line:
            start = self.first + line * self.inner
            for column, lanes in steps(self.c, 0, self.count, width_of(self.scalar), width_of(self.scalar, 1)):
                yield start + column, column, lanes

    def totals(self, term: Callable[[Value, Value, int], Value], together: int = 1) -> Value:
        """Where the sums of the columns are, in float64, of what `term` gives for what `each` gives it.

        Short terms are better added up for some lines `together`: that spares going back and forth to memory.
        """
        c, wide = self.c, wide_of(self.scalar)
        sums, partial = c.stack(F64, TILE), c.stack(wide.memory, TILE)
        for column, lanes in self.once():
            c.store(sums, float64, column, c.splat(c.constant(F64, 0.0), lanes))
        with c.loop(0, self.length, LINES) as start:
            for column, lanes in self.once():
                c.store(partial, wide, column, c.splat(c.constant(wide.compute, 0.0), lanes))
            end = c.smaller(start + LINES, self.length)
            whole = start + (end - start) // together * together
            for begin, stop, count in ((start, whole, together), (whole, end, 1))[: 1 if together == 1 else 2]:
                for position, column, lanes in self.each(begin, stop, count):
                    total = c.load(partial, wide, column, lanes)
                    for line in range(count):
                        total = total + term(position + self.inner * line, column, lanes)
                    c.store(partial, wide, column, total)
            for column, lanes in self.once():
                part = c.convert(c.load(partial, wide, column, lanes), F64)
                c.store(sums, float64, column, c.load(sums, float64, column, lanes) + part)
        return sums


def _for_each_tile(
    b: Builder, scalar: Scalar, pointers: list[Value], outer: Value, length: Value, inner: Value
) -> Iterator[tuple[Builder, list[Value], Tile]]:
    tiles = (inner + (TILE - 1)) // TILE
    share = rows_per_share(b, length * b.smaller(inner, TILE))
    captured = *pointers, length, inner, tiles
    with b.parallel(outer * tiles, share, *captured, unlock=True) as (c, begin, end, inside):
        *places, length, inner, tiles = inside
        with c.loop(begin, end) as number:
            block = number // tiles
            column = (number - block * tiles) * TILE
            first = block * length * inner + column
            yield c, places, Tile(c, scalar, first, c.smaller(inner - column, TILE), length, inner)


def _softmax_of_tile(c: Builder, out: Value, x: Value, tile: Tile, logarithm: bool) -> None:
    scalar, wide = tile.scalar, wide_of(tile.scalar)
    keeps = scalar.memory == scalar.compute and not logarithm
    tops = c.stack(wide.memory, TILE)
    for column, lanes in tile.once():
        c.store(tops, wide, column, c.splat(c.constant(wide.compute, float("-inf")), lanes))
    for position, column, lanes in tile.each():
        top = c.load(tops, wide, column, lanes)
        c.store(tops, wide, column, c.maximum(top, c.load(x, scalar, position, lanes)))

    def power(position: Value, column: Value, lanes: int) -> Value:
        value = exp(c, c.load(x, scalar, position, lanes) - c.load(tops, wide, column, lanes))
        if keeps:
            c.store(out, scalar, position, value)
        return value

    sums = tile.totals(power)
    factors = c.stack(wide.memory, TILE)
    for column, lanes in tile.once():
        total = c.load(sums, float64, column, lanes)
        total = _log_of_total(c, total, scalar) if logarithm else c.convert(1.0 / total, scalar.compute)
        c.store(factors, wide, column, total)
    for position, column, lanes in tile.each():
        factor = c.load(factors, wide, column, lanes)
        if keeps:
            value = c.load(out, scalar, position, lanes) * factor
        else:
            value = c.load(x, scalar, position, lanes) - c.load(tops, wide, column, lanes)
            value = value - factor if logarithm else exp(c, value) * factor
        c.store(out, scalar, position, value)


@kernel
def softmax_columns(b: Builder, arguments: Arguments, dtype: str, logarithm: bool) -> None:
    """(out, x, outer, length, inner)."""
    pointers = [arguments.array(number).data for number in range(2)]
    sizes = [arguments.integer(number) for number in (2, 3, 4)]
    for c, (out, x), tile in _for_each_tile(b, SCALARS[dtype], pointers, *sizes):
        _softmax_of_tile(c, out, x, tile, logarithm)


def _gradient_of_tile(c: Builder, of_x: Value, grad: Value, result: Value, tile: Tile, logarithm: bool) -> None:
    scalar = tile.scalar

    def term(position: Value, column: Value, lanes: int) -> Value:
        value = c.load(grad, scalar, position, lanes)
        return value if logarithm else value * c.load(result, scalar, position, lanes)

    sums = tile.totals(term, 8)
    for position, column, lanes in tile.each():
        total = c.convert(c.load(sums, float64, column, lanes), scalar.compute)
        value, own = c.load(grad, scalar, position, lanes), c.load(result, scalar, position, lanes)
        value = value - exp(c, own) * total if logarithm else (value - total) * own
        c.store(of_x, scalar, position, value)


@kernel
def softmax_columns_backward(b: Builder, arguments: Arguments, dtype: str, logarithm: bool) -> None:
    """(of_x, grad, result, outer, length, inner)."""
    pointers = [arguments.array(number).data for number in range(3)]
    sizes = [arguments.integer(number) for number in (3, 4, 5)]
    for c, (of_x, grad, result), tile in _for_each_tile(b, SCALARS[dtype], pointers, *sizes):
        _gradient_of_tile(c, of_x, grad, result, tile, logarithm)
