"""Row programs on contiguous rows, one by one, with vectors of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..row_program import COLUMN, ELEMENT, Pass, RowProgram, costly
from ..types import SCALARS, Scalar
from .lowering import Rows, Spot, arguments_of, scalar_of
from .shared import column_total, highest, rows_per_share, scratch, totals, wide_of, width_of


class OneRow(Rows):
    """A contiguous row. `sums` has for each place that takes sums over rows where they are collected."""

    def __init__(
        self,
        c: Builder,
        program: RowProgram,
        places: Sequence[Value],
        numbers: Sequence[Value],
        length: Value,
        row: Value,
        sums: dict[int, Value] | None = None,
    ) -> None:
        begin = row * length
        here = [
            c.at(pointer, SCALARS[place.dtype], begin) if place.has == ELEMENT else pointer
            for place, pointer in zip(program.places, places, strict=True)
        ]
        super().__init__(c, program, here, numbers, length)
        self.row = row
        self.sums = sums or {}

    def load_column(self, pointer: Value, kind: Scalar, spot: Spot) -> Value:
        return self.c.load(pointer, kind, spot.i, spot.lanes)

    def load_number(self, place: int) -> Value:
        return self.c.load(self.places[place], self.memory(place), self.row)

    def reduce(self, one: Pass) -> None:
        c, (sums, tops), width = self.c, self.split(one), width_of(self.scalar)

        if sums:
            terms = partial(self._several, one, [self.term(number) for number in sums])
            found = totals(c, 0, self.length, width, self.scalar, len(sums), terms)
            for number, total in zip(sums, found, strict=True):
                self.values[number] = c.convert(total, self.type_of(number).compute)
        for number in tops:
            value = partial(self._value, one, self.term(number))
            self.values[number] = highest(c, 0, self.length, width, self.scalar, value)

    def _several(self, one: Pass, steps: list[int], i: Value, lanes: int) -> list[Value]:
        values = self.elements(one, Spot(i, lanes, i))
        return [values[step] for step in steps]

    def _value(self, one: Pass, step: int, i: Value, lanes: int) -> Value:
        return self.elements(one, Spot(i, lanes, i))[step]

    def store_number(self, place: int, value: Value) -> None:
        self.c.store(self.places[place], self.memory(place), self.row, value)

    def store_elements(self, last: Pass) -> None:
        c, wide = self.c, wide_of(self.scalar)
        loads = [self.program.steps[number][2] for number in last.each if self.program.steps[number][0] == "load"]
        arrays = sum(self.program.places[place].has == ELEMENT for place in loads)
        for i, lanes in c.lanes(0, self.length, width_of(self.scalar, 2 if arrays > 1 else 4)):
            spot = Spot(i, lanes, i)
            values = self.elements(last, spot)
            for place, step in self.program.stores_to(COLUMN):
                total = c.load(self.sums[place], wide, i, lanes)
                c.store(self.sums[place], wide, i, total + values[step])
            for place, step in self.program.stores_to(ELEMENT):
                self.store_element(self.places[place], self.memory(place), spot, values[step])


@kernel
def rows_one_by_one(b: Builder, arguments: Arguments, program: RowProgram) -> None:
    """(*places, *numbers, rows, length)."""
    pointers, numbers, (rows, length) = arguments_of(arguments, program, 2)
    write_rows(b, program, pointers, numbers, rows, length)


def write_rows(
    b: Builder, program: RowProgram, pointers: Sequence[Value], numbers: Sequence[Value], rows: Value, length: Value
) -> None:
    """Go through all rows, one by one."""
    captured = *pointers, *numbers, length
    with b.parallel(rows, rows_per_share(b, length), *captured, unlock=True) as (c, begin, end, inside):
        places, given, length = inside[: len(pointers)], inside[len(pointers) : -1], inside[-1]

        def run(room: Value | None) -> None:
            with c.loop(begin, end) as row:
                one = OneRow(c, program, places, given, length, row)
                one.keep(room)
                one.run()

        kept = costly(program)
        if kept and all(SCALARS[program.places[place].dtype].size == 2 for place, _ in program.stores_to(ELEMENT)):
            with scratch(c, SCALARS[program.steps[kept[0]][1]], length) as room:
                run(room)
        else:
            run(None)


@kernel
def rows_with_sums(b: Builder, arguments: Arguments, program: RowProgram) -> None:
    """(*places, *numbers, rows, length, room, chunk): for programs that add up columns over all rows.

    They are added up over `chunk` rows at a time, then over such chunks. `room` is for a row for each chunk
    and each of the sums, of float32, or of float64 for float64.
    """
    count = len(program.places) + program.numbers()
    pointers, numbers, (rows, length) = arguments_of(arguments, program, 2)
    room, chunk_size = arguments.array(count + 2).data, arguments.integer(count + 3)
    columns, wide = program.stores_to(COLUMN), wide_of(scalar_of(program))
    width = width_of(scalar_of(program), 2)
    chunks = (rows + chunk_size - 1) // chunk_size
    share = b.larger(rows_per_share(b, length) // chunk_size, 1)
    captured = *pointers, *numbers, room, rows, length, chunk_size
    with b.parallel(chunks, share, *captured, unlock=True) as (c, begin, end, inside):
        places, given = inside[: len(pointers)], inside[len(pointers) : -4]
        room_, rows_, length_, size = inside[-4:]
        with c.loop(begin, end) as chunk:
            start = c.at(room_, wide, chunk * length_ * len(columns))
            sums = {place: c.at(start, wide, length_ * number) for number, (place, _) in enumerate(columns)}
            for i, lanes in c.lanes(0, length_ * len(columns), width):
                c.store(start, wide, i, c.splat(c.constant(wide.compute, 0.0), lanes))
            with c.loop(chunk * size, c.smaller((chunk + 1) * size, rows_)) as row:
                OneRow(c, program, places, given, length_, row, sums).run()
    for number, (place, _) in enumerate(columns):
        target = SCALARS[program.places[place].dtype]
        for i, lanes in b.lanes(0, length, width):
            begin = b.at(room, wide, i + length * number)
            total = column_total(b, begin, wide, length * len(columns), chunks, lanes)
            b.store(pointers[place], target, i, b.convert(total, wide.compute))
