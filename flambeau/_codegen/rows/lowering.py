"""Row programs as LLVM code: what all forms have in common.

Rows that are contiguous and long enough are gone through one by one, with vectors of neighbours (`one_by_one.py`).
Short ones are gathered into vectors of which each lane has a row of its own (`in_lanes.py`). Where the elements of a
row are apart from each other, neighbouring rows, which are columns of memory, lie in the lanes (`in_tiles.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..arrays import Arguments
from ..build import Builder, Value
from ..functions.exponential import exp_of_difference
from ..lower import constant, operation
from ..row_program import COLUMN, ELEMENT, ROW, Pass, RowProgram, costly, passes
from ..types import SCALARS, Scalar


class Spot(NamedTuple):
    """Elements at hand, `lanes` of them: of one row from element `i` on, or element `i` of several rows.

    In a tile `i` is the first of the columns.
    """

    i: Value
    lanes: int
    place: Value
    """Where the first of them is in arrays that have a number for each element."""


class Rows:
    """A program at work on the rows that a form has at hand."""

    def __init__(
        self, c: Builder, program: RowProgram, places: Sequence[Value], numbers: Sequence[Value], length: Value
    ) -> None:
        self.c = c
        self.program = program
        self.places = places
        self.numbers = numbers
        self.length = length
        self.scalar = scalar_of(program)
        self.kept_in: dict[int, tuple[Value, Scalar]] = {}
        self.values: dict[int, Value] = {}
        """The numbers of the rows that are known, by step."""

    def memory(self, place: int) -> Scalar:
        return SCALARS[self.program.places[place].dtype]

    def type_of(self, step: int) -> Scalar:
        return SCALARS[self.program.steps[step][1]]

    def keep(self, room: Value | None = None) -> None:
        """Let costly steps be kept: in a place that is written later, or else in `room`, of the type of the first."""
        for step in costly(self.program):
            kind = self.type_of(step)
            for place, _ in self.program.stores_to(ELEMENT):
                if self.memory(place) is kind:
                    self.kept_in[step] = self.places[place], kind
                    break
            else:
                if room is not None:
                    self.kept_in[step] = room, kind

    def run(self) -> list[Value]:
        """Write the passes; the results of the program."""
        each = passes(self.program, self.kept_in)
        for one in each:
            self.before(one.before)
            if one.reductions:
                self.reduce(one)
        for place, step in self.program.stores_to(ROW):
            self.store_step(place, step)
        if self.program.stores_to(ELEMENT) or self.program.stores_to(COLUMN):
            self.store_elements(each[-1])
        return [self.values[number] for number in self.program.results]

    def before(self, steps: Sequence[int]) -> None:
        """Compute numbers of the rows."""
        for number in steps:
            if number not in self.values:
                self.values[number] = self.number_of_rows(number, self.values)

    def number_of_rows(self, number: int, values: dict[int, Value]) -> Value:
        """A step about the rows."""
        name, _, *operands = self.program.steps[number]
        if name == "load":
            return self.load_number(operands[0])
        if name == "number":
            return self.numbers[operands[0]]
        if name == "length":
            return self.c.convert(self.length, self.type_of(number).compute)
        return self.computed(number, values)

    def computed(self, number: int, values: dict[int, Value]) -> Value:
        """A step that is a constant or computes something of earlier ones."""
        name, type_name, *operands = self.program.steps[number]
        if name == "constant":
            return constant(self.c, type_name, operands[0])
        given = [values[each] for each in operands]
        if name == "cast":
            return self.c.convert(given[0], self.type_of(number).compute)
        if name == "exp":  # of differences to the largest element, of logarithms of probabilities
            return exp_of_difference(self.c, given[0])
        return operation(name)(self.c, *given)

    def elements(self, one: Pass, spot: Spot) -> dict[int, Value]:
        """What a pass computes of the elements at hand, besides the numbers of their rows."""
        values = self.numbers_at(spot)
        for number in one.found:
            room, kind = self.kept_in[number]
            values[number] = self.load_element(room, kind, spot)
        for number in one.each:
            name, _, *operands = self.program.steps[number]
            values[number] = self.loaded(operands[0], spot) if name == "load" else self.computed(number, values)
        for number in one.keeps:
            room, kind = self.kept_in[number]
            self.store_element(room, kind, spot, values[number])
        return values

    def loaded(self, place: int, spot: Spot) -> Value:
        if self.program.places[place].has == COLUMN:
            return self.load_column(self.places[place], self.memory(place), spot)
        return self.load_element(self.places[place], self.memory(place), spot)

    # ----- what differs from form to form ---------------------------------------------------------------------------

    def numbers_at(self, spot: Spot) -> dict[int, Value]:
        """The numbers of the rows of the elements at hand."""
        return dict(self.values)

    def load_element(self, pointer: Value, kind: Scalar, spot: Spot) -> Value:
        return self.c.load(pointer, kind, spot.place, spot.lanes)

    def store_element(self, pointer: Value, kind: Scalar, spot: Spot, value: Value) -> None:
        self.c.store(pointer, kind, spot.place, value)

    def load_column(self, pointer: Value, kind: Scalar, spot: Spot) -> Value:
        """What an array has for the column of the elements: the same for all rows."""
        raise NotImplementedError

    def load_number(self, place: int) -> Value:
        """What an array has for the rows."""
        raise NotImplementedError

    def reduce(self, one: Pass) -> None:
        """Find the sums and the largest elements of a pass."""
        raise NotImplementedError

    def store_step(self, place: int, step: int) -> None:
        """Store what a step has computed of the rows."""
        self.store_number(place, self.c.convert(self.values[step], self.memory(place).compute))

    def store_number(self, place: int, value: Value) -> None:
        """Store a number of the rows."""
        raise NotImplementedError

    def store_elements(self, last: Pass) -> None:
        """Store elements, and add to the sums over rows."""
        raise NotImplementedError

    def split(self, one: Pass) -> tuple[list[int], list[int]]:
        """The sums of a pass and its largest elements."""
        sums = [number for number in one.reductions if self.program.steps[number][0] == "sum"]
        return sums, [number for number in one.reductions if number not in sums]

    def term(self, number: int) -> int:
        """The step that a reduction is about."""
        return self.program.operands(number)[0]


def scalar_of(program: RowProgram) -> Scalar:
    """The type of the elements of rows."""
    return next(SCALARS[place.dtype] for place in program.places if place.has == ELEMENT)


def arguments_of(arguments: Arguments, program: RowProgram, sizes: int) -> tuple[list[Value], list[Value], list[Value]]:
    """The pointers, the numbers and the sizes that a kernel is called with."""
    places, numbers = len(program.places), program.numbers()
    return (
        [arguments.array(number).data for number in range(places)],
        [arguments.float64(places + number) for number in range(numbers)],
        [arguments.integer(places + numbers + number) for number in range(sizes)],
    )
