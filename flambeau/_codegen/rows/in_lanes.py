"""Row programs on short contiguous rows, each in a lane of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..row_program import ELEMENT, Pass, RowProgram
from ..types import Scalar
from .lowering import Rows, Spot, arguments_of, scalar_of
from .shared import load_lanes, rows_per_share, store_lanes, width_of


class RowsInLanes(Rows):
    """Contiguous rows from `row` on, in the lanes of vectors, which are gathered."""

    def __init__(
        self,
        c: Builder,
        program: RowProgram,
        places: Sequence[Value],
        numbers: Sequence[Value],
        length: Value,
        row: Value,
        lanes: int,
    ) -> None:
        super().__init__(c, program, places, numbers, length)
        self.row = row
        self.lanes = lanes

    def each(self) -> Iterator[Spot]:
        """Write a body for one element of each row."""
        with self.c.loop(0, self.length) as j:
            yield Spot(j, self.lanes, self.row * self.length + j)

    def load_element(self, pointer: Value, kind: Scalar, spot: Spot) -> Value:
        return load_lanes(self.c, pointer, kind, spot.place, self.lanes, self.length)

    def store_element(self, pointer: Value, kind: Scalar, spot: Spot, value: Value) -> None:
        store_lanes(self.c, pointer, kind, spot.place, self.c.splat(value, self.lanes), self.length)

    def load_column(self, pointer: Value, kind: Scalar, spot: Spot) -> Value:
        return self.c.load(pointer, kind, spot.i)

    def load_number(self, place: int) -> Value:
        return self.c.load(self.places[place], self.memory(place), self.row, self.lanes)

    def reduce(self, one: Pass) -> None:
        sums, _ = self.split(one)
        kinds = {number: self.type_of(number).compute for number in one.reductions}
        found = {
            number: self.c.variable(kind, 0.0 if number in sums else float("-inf"), self.lanes)
            for number, kind in kinds.items()
        }
        for spot in self.each():
            values = self.elements(one, spot)
            for number, variable in found.items():
                value = self.c.convert(values[self.term(number)], kinds[number])
                if number in sums:
                    variable.add(value)
                else:
                    variable.value = self.c.maximum(variable.value, value)
        self.values.update((number, variable.value) for number, variable in found.items())

    def store_number(self, place: int, value: Value) -> None:
        self.c.store(self.places[place], self.memory(place), self.row, value)

    def store_elements(self, last: Pass) -> None:
        for spot in self.each():
            values = self.elements(last, spot)
            for place, step in self.program.stores_to(ELEMENT):
                self.store_element(self.places[place], self.memory(place), spot, values[step])


@kernel
def rows_in_lanes(b: Builder, arguments: Arguments, program: RowProgram) -> None:
    """(*places, *numbers, rows, length)."""
    pointers, numbers, (rows, length) = arguments_of(arguments, program, 2)
    write_rows_in_lanes(b, program, pointers, numbers, rows, length)


def write_rows_in_lanes(
    b: Builder, program: RowProgram, pointers: Sequence[Value], numbers: Sequence[Value], rows: Value, length: Value
) -> None:
    """Go through all rows, some at a time."""
    captured = *pointers, *numbers, length
    with b.parallel(rows, rows_per_share(b, length), *captured, unlock=True) as (c, begin, end, inside):
        places, given, length = inside[: len(pointers)], inside[len(pointers) : -1], inside[-1]
        for row, lanes in c.lanes(begin, end, width_of(scalar_of(program), 2)):
            some = RowsInLanes(c, program, places, given, length, row, lanes)
            some.keep()
            some.run()
