"""Row programs along dimensions that are not the last: rows are columns of memory, and neighbours lie in the lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..arrays import Arguments
from ..build import Builder, Operand, Value
from ..kernel import kernel
from ..row_program import ELEMENT, Pass, RowProgram
from ..types import F64, Scalar, float64
from .lowering import Rows, Spot, arguments_of, scalar_of
from .shared import LINES, rows_per_share, steps, wide_of, width_of

TILE = 512
"""So many neighbouring columns are gone through together: short enough for the stack, long enough for the memory."""


class Tile:
    """Neighbouring columns of (outer, length, inner), from an address on, `inner` elements from line to line.

    `row` is the number of the first column among all rows of a program.
    """

    def __init__(
        self, c: Builder, scalar: Scalar, first: Value, row: Value, count: Value, length: Value, inner: Value
    ) -> None:
        self.c = c
        self.scalar = scalar
        self.first = first
        self.row = row
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
    b: Builder, scalar: Scalar, captured: list[Value], outer: Value, length: Value, inner: Value
) -> Iterator[tuple[Builder, list[Value], Tile]]:
    """Write a body for each tile; it gets its builder, what is captured of the values outside, and the tile."""
    tiles = (inner + (TILE - 1)) // TILE
    share = rows_per_share(b, length * b.smaller(inner, TILE))
    with b.parallel(outer * tiles, share, *captured, length, inner, tiles, unlock=True) as (c, begin, end, inside):
        *places, length, inner, tiles = inside
        with c.loop(begin, end) as number:
            block = number // tiles
            column = (number - block * tiles) * TILE
            first, row = block * length * inner + column, block * inner + column
            yield c, places, Tile(c, scalar, first, row, c.smaller(inner - column, TILE), length, inner)


class RowsOfTile(Rows):
    """The rows of a tile. What differs from row to row lies on the stack, a number for each column of memory."""

    def __init__(self, c: Builder, program: RowProgram, places: Sequence[Value], tile: Tile) -> None:
        super().__init__(c, program, places, (), tile.length)
        self.tile = tile
        self.stacks: dict[int, Value] = {}

    def numbers_of(self, column: Value, lanes: int) -> dict[int, Value]:
        """The numbers of some columns."""
        found = dict(self.values)
        for number, stack in self.stacks.items():
            found[number] = self.c.load(stack, self.type_of(number), column, lanes)
        return found

    def numbers_at(self, spot: Spot) -> dict[int, Value]:
        return self.numbers_of(spot.i, spot.lanes)

    def each(self) -> Iterator[Spot]:
        """Write a body for all elements, line by line."""
        for position, column, lanes in self.tile.each():
            yield Spot(column, lanes, position)

    def before(self, steps: Sequence[int]) -> None:
        same = [n for n in steps if n not in self.stacks and set(self.program.operands(n)) <= self.values.keys()]
        super().before(same)
        differing = [n for n in steps if n not in self.stacks and n not in self.values]
        if not differing:
            return
        made = {number: self.c.stack(self.type_of(number).memory, TILE) for number in differing}
        for column, lanes in self.tile.once():
            values = self.numbers_of(column, lanes)
            for number in differing:
                values[number] = self.computed(number, values)
                self.c.store(made[number], self.type_of(number), column, values[number])
        self.stacks.update(made)

    def reduce(self, one: Pass) -> None:
        sums, tops = self.split(one)
        together = 1 if any(self.program.steps[number][0] == "exp" for number in one.each) else 8
        for number in sums:

            def term(position: Value, column: Value, lanes: int, number: int = number) -> Value:
                return self.elements(one, Spot(column, lanes, position))[self.term(number)]

            self.stacks[number] = self.tile.totals(term, together)
        for number in tops:
            kind = self.type_of(number)
            stack = self.stacks[number] = self.c.stack(kind.memory, TILE)
            for column, lanes in self.tile.once():
                self.c.store(stack, kind, column, self.c.splat(self.c.constant(kind.compute, float("-inf")), lanes))
            for spot in self.each():
                value = self.elements(one, spot)[self.term(number)]
                top = self.c.maximum(self.c.load(stack, kind, spot.i, spot.lanes), value)
                self.c.store(stack, kind, spot.i, top)

    def store_step(self, place: int, step: int) -> None:
        for column, lanes in self.tile.once():
            value = self.c.convert(self.numbers_of(column, lanes)[step], self.memory(place).compute)
            self.c.store(self.places[place], self.memory(place), self.tile.row + column, self.c.splat(value, lanes))

    def store_elements(self, last: Pass) -> None:
        for spot in self.each():
            values = self.elements(last, spot)
            for place, step in self.program.stores_to(ELEMENT):
                self.store_element(self.places[place], self.memory(place), spot, values[step])


@kernel
def rows_in_tiles(b: Builder, arguments: Arguments, program: RowProgram) -> None:
    """(*places, outer, length, inner): rows along the middle one of three dimensions; no place has columns."""
    pointers, _, sizes = arguments_of(arguments, program, 3)
    for c, places, tile in _for_each_tile(b, scalar_of(program), pointers, *sizes):
        some = RowsOfTile(c, program, places, tile)
        some.keep()
        some.run()
