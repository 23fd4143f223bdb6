"""Programs for rows: what is computed of each row of an array, as a flat list of typed steps.

To the steps of a `Program`, which are about one element, come loads by row, column or both, sums and largest elements
of rows, and stores. A program is a value, like a `Program`, and is lowered to LLVM (`rows/lowering.py`) and to CUDA
C (`cuda/rows.py`). Both go through the elements of a row in the same passes: a sum has to be known before the elements
that it divides are gone through again.

A description is written with NumPy's functions:

    def softmax(rows: RowTrace) -> None:
        x = rows.load("x")
        powers = np.exp(x - rows.largest(x))
        rows.store("out", powers / rows.sum(powers))
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import numpy as np

from .expr import Expr, Step, Trace, computed_type

ELEMENT, COLUMN, ROW = "element", "column", "row"
"""What a place has a number for: each element of each row, each column (the same for all rows), each row."""

REDUCTIONS = frozenset(("sum", "largest"))
_COSTLY = frozenset(("exp",))
"""Steps that are better kept than computed again."""


class Place(NamedTuple):
    """An array that a program reads or writes."""

    name: str
    dtype: str
    has: str


class RowProgram(NamedTuple):
    """What to compute of a row.

    Steps beyond those of a `Program`: ("load", type, place), ("number", type, position) for an argument,
    ("length", type), ("sum", type, step) and ("largest", type, step). `stores` are places and steps; an element that
    goes to a place that has columns is added up over all rows. `results` are numbers of the row that are handed on.
    """

    steps: tuple[Step, ...]
    places: tuple[Place, ...]
    stores: tuple[tuple[int, int], ...]
    results: tuple[int, ...] = ()

    def numbers(self) -> int:
        """How many numbers it takes as arguments."""
        return len({step[2] for step in self.steps if step[0] == "number"})

    def operands(self, number: int) -> tuple[int, ...]:
        """The steps that a step reads."""
        name, _, *operands = self.steps[number]
        return () if name in ("load", "number", "length", "constant") else tuple(operands)

    def is_of_elements(self) -> tuple[bool, ...]:
        """For each step whether it has a value for each element of a row, not one for the row."""
        found: list[bool] = []
        for number, (name, _, *operands) in enumerate(self.steps):
            if name == "load":
                found.append(self.places[operands[0]].has != ROW)
            else:
                found.append(name not in REDUCTIONS and any(found[each] for each in self.operands(number)))
        return tuple(found)

    def stores_to(self, has: str) -> list[tuple[int, int]]:
        """The stores to places that have numbers for elements, columns or rows."""
        return [store for store in self.stores if self.places[store[0]].has == has]


class RowTrace(Trace):
    """The steps of a description. `element` is the type to compute with; sums of rows are kept in `wide`."""

    def __init__(self, dtype: str, wide: str | None = None) -> None:
        super().__init__()
        self.dtype = dtype
        self.element = np.dtype(np.float64 if dtype == "float64" else np.float32)
        self.wide = self.element if wide is None else np.dtype(wide)
        self._places: list[Place] = []
        self._stores: list[tuple[int, int]] = []

    def _place(self, name: str, dtype: str | None, has: str) -> int:
        place = Place(name, self.dtype if dtype is None else dtype, has)
        if place not in self._places:
            self._places.append(place)
        return self._places.index(place)

    def load(self, name: str, dtype: str | None = None, has: str = ELEMENT) -> Expr:
        """The number that an array has for the element, the column or the row."""
        place = self._place(name, dtype, has)
        memory = self._places[place].dtype
        kept = self.element if memory in ("float16", "bfloat16") else computed_type(np.dtype(memory))
        return self.step("load", kept.name, place).astype(self.element)

    def argument(self, position: int) -> Expr:
        """A number that the caller gives."""
        return self.step("number", "float64", position).astype(self.wide)

    def sum(self, value: Expr) -> Expr:
        """The sum over the row."""
        return self.step("sum", self.wide.name, value.number)

    def mean(self, value: Expr) -> Expr:
        """The mean over the row."""
        mean: Expr = self.sum(value) / self.step("length", self.wide.name)
        return mean

    def largest(self, value: Expr) -> Expr:
        """The largest element of the row; NaN if there is one."""
        return self.step("largest", value.dtype.name, value.number)

    def narrow(self, value: Any) -> Expr:
        """A number of the row in the type of elements."""
        return self.cast(value, self.element)

    def fused(self, value: Expr, factor: Expr, summand: Expr) -> Expr:
        """`value * factor + summand`, rounded once."""
        return self.apply("fma", self.element, value, factor, summand)

    def store(self, name: str, value: Any, dtype: str | None = None, has: str = ELEMENT) -> None:
        """Write an element, a number of the row, or what the elements of a column come to over all rows."""
        self._stores.append((self._place(name, dtype, has), value.number))

    def finished(self, results: Iterable[Expr] = ()) -> RowProgram:
        """Everything that was written down; places that are written come first, those of elements before others."""
        written = {place: self._places[place].has == ELEMENT for place, _ in self._stores}
        order = sorted(range(len(self._places)), key=lambda n: 2 - (n in written) - written.get(n, False))
        moved = {old: new for new, old in enumerate(order)}
        steps = tuple((*step[:2], moved[step[2]]) if step[0] == "load" else step for step in self.steps)
        return RowProgram(
            steps,
            tuple(self._places[number] for number in order),
            tuple((moved[place], step) for place, step in self._stores),
            tuple(each.number for each in results),
        )


class Pass(NamedTuple):
    """One way through the elements of a row."""

    before: tuple[int, ...]
    """Steps about the row that are computed first."""
    each: tuple[int, ...]
    """Steps that are computed for every element."""
    found: tuple[int, ...]
    """Of steps about elements, those that an earlier pass has kept."""
    keeps: tuple[int, ...]
    """Steps about elements that a later pass will find."""
    reductions: tuple[int, ...]
    """Sums and largest elements that are known afterwards."""


def passes(program: RowProgram, kept: Collection[int] = ()) -> list[Pass]:
    """The passes of a program in order; the last one makes the stores.

    It may have no steps about elements, if nothing is stored of them. `kept`: steps that are not computed twice.
    """
    of_elements, times = program.is_of_elements(), _times(program)
    last = max(times, default=0)
    made: list[Pass] = []
    known: set[int] = set()
    for time in range(last + 1):
        before = tuple(n for n, at in enumerate(times) if not of_elements[n] and at <= time and n not in known)
        known.update(before)
        reductions = tuple(n for n, step in enumerate(program.steps) if step[0] in REDUCTIONS and times[n] == time + 1)
        wanted = [program.operands(number)[0] for number in reductions]
        if time == last:
            wanted = [step for place, step in program.stores if program.places[place].has != ROW]
        needed = _needed(program, wanted, known)
        found = tuple(n for n in needed if n in known)
        each = tuple(n for n in needed if n not in known)
        known.update(n for n in each if n in kept)
        made.append(Pass(before, each, found, (), reductions))
    for number, one in enumerate(made):
        later = {step for other in made[number + 1 :] for step in other.found}
        made[number] = one._replace(keeps=tuple(step for step in one.each if step in later))
    return made


def costly(program: RowProgram) -> tuple[int, ...]:
    """Steps about elements that cost much and are wanted by more than one pass."""
    counts: dict[int, int] = {}
    for one in passes(program):
        for step in one.each:
            counts[step] = counts.get(step, 0) + 1
    return tuple(step for step, count in counts.items() if count > 1 and program.steps[step][0] in _COSTLY)


def _times(program: RowProgram) -> list[int]:
    """The pass in which each step can first be computed; what a pass reduces is known for the next one."""
    times: list[int] = []
    for number, (name, *_) in enumerate(program.steps):
        time = max((times[each] for each in program.operands(number)), default=0)
        times.append(time + (name in REDUCTIONS))
    return times


def _needed(program: RowProgram, wanted: list[int], known: Collection[int]) -> tuple[int, ...]:
    """The steps about elements that are behind those that are wanted, in order, back to those that are known."""
    of_elements = program.is_of_elements()
    found: set[int] = set()
    left = list(wanted)
    while left:
        number = left.pop()
        if number not in found and of_elements[number]:
            found.add(number)
            if number not in known:
                left += program.operands(number)
    return tuple(sorted(found))
