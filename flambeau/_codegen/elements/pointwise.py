"""Kernels that compute each element of their results from the elements at the same place in their operands."""

from __future__ import annotations

from collections.abc import Sequence

from ..arrays import Arguments
from ..build import Builder, Value
from ..expr import Program
from ..kernel import kernel
from ..lower import run_program
from ..shares import ELEMENTS, elements_worth
from ..types import I64, SCALARS, Scalar

_SHORT = 8
"""To begin a loop over fewer elements takes longer than the loop."""

_LONG = 32
"""From so many steps on it pays to compute several vectors side by side."""

_QUARTER = 4
"""So many elements at a time are computed at the end of a row, which may be a short one, where each is costly."""

MOST_DIMENSIONS = 16

CONTIGUOUS, SINGLE, NUMBER = "c", "1", "n"
"""Forms of operands: an array like the result, an array of one element, a Python number."""


def vector_width(program: Program, operands: Sequence[Scalar]) -> int:
    """How many elements to compute at a time: as many as fill four registers of 128 bits, or twice as many.

    A long computation in float64, as a series is, waits for its own steps more than for the processor's: two of them
    side by side take little longer than one.
    """
    widest = max([4, *(SCALARS[step[1]].size for step in program.steps), *(scalar.size for scalar in operands)])
    return (128 if widest == 8 and len(program.steps) >= _LONG else 64) // widest


@kernel
def pointwise_flat(b: Builder, arguments: Arguments, program: Program, memory: tuple[str, ...], forms: str) -> None:
    """Operands without gaps, of one shape, or numbers. `memory` has the dtypes of results and operands in order."""
    scalars = [SCALARS[name] for name in memory]
    results = len(program.results)
    pointers = [arguments.array(number).data for number in range(results)]
    operands: list[Value] = []
    for number, form in enumerate(forms, results):
        scalar = scalars[number]
        if form == CONTIGUOUS:
            operands.append(arguments.array(number).data)
        elif form == SINGLE:
            operands.append(b.load(arguments.array(number).data, scalar))
        elif scalar.is_float:
            operands.append(b.convert(arguments.float64(number), scalar.compute))
        else:
            operands.append(b.convert(arguments.integer(number), scalar.compute, scalar.is_signed))
    count = _total(b, arguments)
    width = vector_width(program, scalars)
    grain = elements_worth(step[0] for step in program.steps)
    with b.parallel(count, grain, *pointers, *operands, unlock=True) as (c, begin, end, inside):
        outputs, given = inside[:results], inside[results:]
        for position, lanes in c.lanes(begin, end, width):
            loaded = [
                c.load(each, scalar, position, lanes) if form == CONTIGUOUS else each
                for each, scalar, form in zip(given, scalars[results:], forms, strict=True)
            ]
            computed = run_program(c, program, loaded, lanes)
            for output, scalar, value in zip(outputs, scalars, computed, strict=False):
                c.store(output, scalar, position, value)


def _total(b: Builder, arguments: Arguments) -> Value:
    first = arguments.array(0)
    total = b.variable(I64, 1)
    with b.loop(0, first.ndim) as dimension:
        total.value = total.value * first.size(dimension)
    return total.value


class Nest:
    """The loops over arrays of any layout: dimensions of one shape, sorted and merged as far as the strides allow.

    The last dimension is the inner loop; the others are counted together as rows.
    """

    def __init__(self, b: Builder, arguments: Arguments, count: int) -> None:
        self.b = b
        self.count = count
        self.sizes = b.stack(I64, MOST_DIMENSIONS)
        self.strides = [b.stack(I64, MOST_DIMENSIONS) for _ in range(count)]
        self.dimensions = b.variable(I64, 0)
        self._take(arguments)
        self._sort()
        self._merge()
        self._lengthen()

    def _get(self, table: Value, index: Value | int) -> Value:
        return self.b.load_raw(self.b.offset(table, index, I64), I64)

    def _set(self, table: Value, index: Value | int, value: Value | int) -> None:
        self.b.store_raw(value, self.b.offset(table, index, I64), I64)

    def _take(self, arguments: Arguments) -> None:
        """Sizes and strides, without dimensions of one element; broadcast operands stand still."""
        b = self.b
        shape = arguments.array(0)
        ndim = shape.ndim
        arrays = [arguments.array(number) for number in range(self.count)]
        with b.loop(0, ndim) as dimension:
            size = shape.size(dimension)
            with b.when(size != 1):
                place = self.dimensions.value
                self._set(self.sizes, place, size)
                for array, table in zip(arrays, self.strides, strict=True):
                    own = dimension - ndim + array.ndim
                    stride = b.variable(I64, 0)
                    with b.when(own >= 0), b.when(array.size(own) != 1):
                        stride.value = array.stride(own)
                    self._set(table, place, stride.value)
                self.dimensions.add(1)
        with b.when(self.dimensions.value == 0):
            self._set(self.sizes, 0, 1)
            for table in self.strides:
                self._set(table, 0, 0)
            self.dimensions.value = 1

    def _sort(self) -> None:
        """Dimensions in the order of the result's strides, the longest first."""
        b = self.b
        with b.loop(1, self.dimensions.value) as end:
            place = b.variable(I64, end)
            with b.repeat_while() as go_on_if:
                go_on_if(place.value > 0)
                here, before = place.value, place.value - 1
                left, right = self._get(self.strides[0], before), self._get(self.strides[0], here)
                go_on_if(b.abs(left) < b.abs(right))
                for table in (self.sizes, *self.strides):
                    first, second = self._get(table, before), self._get(table, here)
                    self._set(table, before, second)
                    self._set(table, here, first)
                place.value = before

    def _merge(self) -> None:
        """Neighbouring dimensions that every operand walks through evenly become one."""
        b = self.b
        kept = b.variable(I64, 0)
        with b.loop(1, self.dimensions.value) as dimension:
            size = self._get(self.sizes, dimension)
            even = None
            for table in self.strides:
                fits = self._get(table, kept.value) == self._get(table, dimension) * size
                even = fits if even is None else even & fits
            assert even is not None
            with b.either(even) as (merge, keep):
                with merge:
                    self._set(self.sizes, kept.value, self._get(self.sizes, kept.value) * size)
                with keep:
                    kept.add(1)
                    self._set(self.sizes, kept.value, size)
            for table in self.strides:
                self._set(table, kept.value, self._get(table, dimension))
        self.dimensions.value = kept.value + 1

    def _lengthen(self) -> None:
        """Where the inner loop would be a short one, it changes places with the one around it, if that is longer."""
        b = self.b
        inner, outer = self.dimensions.value - 1, self.dimensions.value - 2
        with b.when((outer >= 0) & (self._get(self.sizes, inner) < _SHORT)):
            longer = self._get(self.sizes, outer) > self._get(self.sizes, inner)
            with b.when(longer):
                for table in (self.sizes, *self.strides):
                    first, second = self._get(table, outer), self._get(table, inner)
                    self._set(table, outer, second)
                    self._set(table, inner, first)

    def total(self) -> Value:
        """How many elements there are."""
        total = self.b.variable(I64, 1)
        with self.b.loop(0, self.dimensions.value) as dimension:
            total.value = total.value * self._get(self.sizes, dimension)
        return total.value

    def captured(self) -> list[Value]:
        """What the function of a parallel loop needs: how many dimensions are around lines of rows, tables, size and
        strides of the rows, and those of the lines.
        """
        b, last = self.b, self.dimensions.value - 1
        tables = [self.sizes, *self.strides]
        around = [b.variable(I64, start) for start in (1, *[0] * self.count)]
        with b.when(last > 0):
            for one, table in zip(around, tables, strict=True):
                one.value = self._get(table, last - 1)
        inner = [self._get(table, last) for table in tables]
        return [last - 1, *tables, *inner, *[one.value for one in around]]


class _Lines:
    """Where the present line of rows is, in the function of a parallel loop: counters of the dimensions around it."""

    def __init__(self, c: Builder, number: Value, outer: Value, sizes: Value, strides: Sequence[Value]) -> None:
        self.c, self.outer, self.sizes, self.strides = c, outer, sizes, strides
        self.counters = c.stack(I64, MOST_DIMENSIONS)
        self.offsets = [c.variable(I64, 0) for _ in strides]
        rest = c.variable(I64, number)
        dimension = c.variable(I64, outer)
        with c.repeat_while() as go_on_if:
            dimension.add(-1)
            go_on_if(dimension.value >= 0)
            size = c.load_raw(c.offset(sizes, dimension.value, I64), I64)
            quotient = rest.value // size
            index = rest.value - quotient * size
            rest.value = quotient
            c.store_raw(index, c.offset(self.counters, dimension.value, I64))
            self._move(dimension.value, index)

    def advance(self) -> None:
        """Go on to the next line."""
        c = self.c
        dimension = c.variable(I64, self.outer - 1)
        with c.repeat_while() as go_on_if:
            go_on_if(dimension.value >= 0)
            counter = c.offset(self.counters, dimension.value, I64)
            size = c.load_raw(c.offset(self.sizes, dimension.value, I64), I64)
            index = c.load_raw(counter, I64) + 1
            self._move(dimension.value, c.integer(1))
            c.store_raw(index, counter)
            go_on_if(index >= size)
            self._move(dimension.value, -size)
            c.store_raw(c.integer(0), counter)
            dimension.add(-1)

    def _move(self, dimension: Value, steps: Value) -> None:
        for offset, table in zip(self.offsets, self.strides, strict=True):
            offset.add(steps * self.c.load_raw(self.c.offset(table, dimension, I64), I64))


@kernel
def pointwise_strided(b: Builder, arguments: Arguments, program: Program, memory: tuple[str, ...]) -> None:
    """Operands of any strides that broadcast to the shape of the results.

    Rows that lie in one line, which is the dimension around them, are computed one after the other: where they begin
    is looked up once for the line.
    """
    scalars = [SCALARS[name] for name in memory]
    results, count = len(program.results), len(memory)
    nest = Nest(b, arguments, count)
    pointers = [arguments.array(number).data for number in range(count)]
    width = vector_width(program, scalars)
    grain = elements_worth(step[0] for step in program.steps)
    widths = (width, _QUARTER) if grain < ELEMENTS and width > _QUARTER else (width,)
    total = nest.total()
    with (
        b.when(total > 0),  # places are found by dividing by sizes
        b.parallel(total, grain, *nest.captured(), *pointers, unlock=True) as (c, begin, end, inside),
    ):
        outer, sizes, strides = inside[0], inside[1], inside[2 : 2 + count]
        inner, steps = inside[2 + count], inside[3 + count : 3 + 2 * count]
        line, jumps = inside[3 + 2 * count], inside[4 + 2 * count : 4 + 3 * count]
        bases = inside[4 + 3 * count :]
        first = begin // inner
        lines = _Lines(c, first // line, outer, sizes, strides)
        position, row, column = c.variable(I64, begin), c.variable(I64, first % line), c.variable(I64, begin % inner)
        with c.repeat_while() as go_on_if:
            go_on_if(position.value < end)
            left = end - position.value
            length = c.smaller(inner - column.value, left)
            rows = c.variable(I64, 1)
            with c.when(length == inner):
                rows.value = line - row.value
                with c.when(rows.value * inner > left):
                    rows.value = left // inner
            places = [
                c.opaque(base + (offset.value + row.value * jump + column.value * step))
                for base, offset, jump, step in zip(bases, lines.offsets, jumps, steps, strict=True)
            ]
            _rows(c, program, scalars, results, places, steps, jumps, length, rows.value, widths)
            position.value = position.value + length * rows.value
            column.value = column.value + length
            with c.when(column.value == inner):
                column.value = 0
                row.value = row.value + rows.value
                with c.when(row.value == line):
                    row.value = 0
                    lines.advance()


def _rows(
    c: Builder,
    program: Program,
    scalars: list[Scalar],
    results: int,
    firsts: list[Value],
    steps: list[Value],
    jumps: list[Value],
    length: Value,
    rows: Value,
    widths: Sequence[int],
) -> None:
    """Rows of one length: by loops of their own where results have no gaps and operands have none or stand still."""
    dense = [step == scalar.size for step, scalar in zip(steps, scalars, strict=True)]
    still = [step == 0 for step in steps]
    operands = range(results, len(scalars))
    patterns = [frozenset(operands)]
    if len(operands) == 2:
        patterns += [frozenset((operands[0],)), frozenset((operands[1],))]
    done = c.variable(I64, 0)
    for pattern in patterns:
        fits = done.value == 0
        for number in range(len(scalars)):
            fits = fits & (dense[number] if number < results or number in pattern else still[number])
        with c.when(fits):
            with c.loop(0, rows) as row:
                places = [first + row * jump for first, jump in zip(firsts, jumps, strict=True)]
                fixed = {
                    number: c.load(places[number], scalars[number]) for number in operands if number not in pattern
                }
                for index, lanes in c.lanes(0, length, *widths):
                    loaded = [
                        fixed[number] if number in fixed else c.load(places[number], scalars[number], index, lanes)
                        for number in operands
                    ]
                    for number, value in enumerate(run_program(c, program, loaded, lanes)):
                        c.store(places[number], scalars[number], index, value)
            done.value = 1
    with c.when(done.value == 0), c.loop(0, rows) as row:
        places = [first + row * jump for first, jump in zip(firsts, jumps, strict=True)]
        for index, lanes in c.lanes(0, length, widths[0], _QUARTER):
            loaded = [
                c.load_spaced(places[number], scalars[number], index, steps[number], lanes) for number in operands
            ]
            for number, value in enumerate(run_program(c, program, loaded, lanes)):
                c.store_spaced(places[number], scalars[number], index, steps[number], value)
