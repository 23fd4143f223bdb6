"""Programs for many sizes: one list of ops, and a table that has, for the sizes of a call, the numbers in it.

The numbers that ops are given, a shape to expand to, a count to divide by, follow from sizes in ways that only the code
knows. So they are not guessed: the first call with new sizes is recorded as any other. If what it did is the same
program but for numbers, these become a row of the table, and no program is made. From then on calls with these sizes
run it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType, MethodType
from typing import Any

import numpy as np

from ..._core.tensor import Tensor
from .._marks import run_inside
from ..capture.guards import State
from ..capture.layout import Layout
from ..program.items import Call, Item, Outside, Value, uses, values_in
from ..program.lower import lowered
from .backward import Joint, Region
from .layouts import in_any_layout
from .source import Source
from .stages import stages_of

_MOST_ROWS = 4096
_MOST_MET = 4096
"""So many sizes without a row are counted."""
_ROWS_AT_ONCE = 2
"""So many rows are made for sizes that come for the second time: the smaller last batch has one."""
_ROWS_AT_FIRST_SIGHT = 8
"""So many rows `dynamic=True` makes for sizes that come for the first time."""
_MOST_OFTEN = 64
"""A recorded call takes as long as some 20 plain ones: sizes that have come so often are worth it in any case."""
_FOLLOWED, _FOLLOWED_IF_GROWING = 2, 4
"""So often sizes have to come until a call is compared with a recorded one, which takes some 4 plain calls' time."""
_OVERDUE = 16
"""By then eager calls have lost as much time as it takes to compare one: it is worth it, whatever was spent before."""
_MOST_UNLIKE = 8
"""After so many calls that were not as the recorded one no further call is compared with it."""
_GROWS = 3
"""So many calls in a row, each with larger sizes than the one before, are those of something that grows."""
NUMBERS = (int, float, slice, np.ndarray)
"""Types of arguments that may follow from sizes."""
_OF_A_CALL = ("kept", "settings", "TABLE")
"""Constants that are no part of what a program does."""


class SizedSource(Source):
    """Source in which every number has a name, whose value is in a row of a table."""

    is_for_all_sizes = True

    def __init__(self, constants: dict[str, Any] | None = None, tensors: dict[int, str] | None = None) -> None:
        super().__init__(constants, tensors)
        self.constants["TABLE"] = None
        self.of_sizes: set[str] = set()
        """The constants that sizes are compared with."""
        self.numbers: list[Any] = []
        self.calls: list[Any] = []
        """What decided which function runs each op."""
        self.spans: list[tuple[int, int, int]] = []
        """Which of the recorded items were written, and where the numbers of each begin and end."""
        self.span_of_items = 0, 0
        """Where the lines of the items begin and end."""

    def _noted_miss(self) -> str:
        return ""

    def number(self, value: Any) -> str:
        self.numbers.append(value)
        return f"n{len(self.numbers) - 1}"

    def expression(self, tree: Any) -> str:
        if type(tree) in NUMBERS:
            return self.number(tree)
        if type(tree) is tuple:
            return f"({''.join([f'{self.expression(each)}, ' for each in tree])})"
        return super().expression(tree)

    def items(self, items: Sequence[Item], kept: Iterable[Value]) -> None:
        """Write items one by one: what is planned ahead is planned for sizes."""
        self.parts += items
        last = {value.number: position for position, item in enumerate(items) for value in uses(item)}
        staying = {each.number for each in kept}
        begin = len(self.lines)
        for position, item in enumerate(items):
            self._note_effects(item)
            self._item(item)
            touched = {each.number for each in (*uses(item), *values_in(getattr(item, "results", None)))} - staying
            if gone := sorted([number for number in touched if last.get(number, position) == position]):
                self.lines.append(f"{' = '.join([f'v{number}' for number in gone])} = None")
        self.span_of_items = begin, len(self.lines)

    def run_of(self, call: Call) -> str:
        name = f"run{len(self.calls)}"
        self.calls.append((call.op.name, [decisive(each) for each in (*call.examples, call.made)]))
        self.constants[name] = lowered(call, takes_any_size=True)
        self.resumable.ops[name] = call.op
        return name

    def _call(self, call: Call) -> None:
        begin = len(self.numbers)
        super()._call(call)
        self.spans.append((call.position, begin, len(self.numbers)))

    def _outside(self, item: Outside) -> None:
        name = f"run{len(self.calls)}"
        self.calls.append((item.function, item.args, item.kwargs))
        self.constants[name] = functools.partial(run_inside, item.function, item.args, item.kwargs)
        self.resumable.outside[name] = functools.partial(item.function, *item.args, **item.kwargs)
        self.lines.append(f"{name}()")

    def unpacked(self) -> str:
        """The line that gives the numbers their names."""
        return (
            f"{''.join([f'n{position}, ' for position in range(len(self.numbers))])}= row" if self.numbers else "pass"
        )

    def is_as(self, other: SizedSource, text: str, other_text: str) -> bool:
        """Whether two recordings are one program."""
        if text != other_text or self.calls != other.calls or self.constants.keys() != other.constants.keys():
            return False
        return all(
            self._is_same(name, value, other.constants[name])
            for name, value in self.constants.items()
            if name not in _OF_A_CALL and not name.startswith("run")
        )

    def _is_same(self, name: str, one: Any, other: Any) -> bool:
        if name in self.of_sizes:
            return _is_like(one, other)
        if name.startswith("k") and type(one) is dict and type(other) is dict:  # arguments, not somebody's attributes
            return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
        return same(one, other)


def decisive(example: Any) -> Any:
    """What of a tensor decides which function runs an op on it."""
    if isinstance(example, Tensor):
        array = example._array
        return example._kind, array.ndim, array.flags.c_contiguous
    if type(example) in (list, tuple):
        return [decisive(each) for each in example]
    return type(example)


def _is_like(one: Any, other: Any) -> bool:
    """Whether two things that sizes are compared with are alike otherwise."""
    return one.is_like(other) if isinstance(one, Layout) and isinstance(other, Layout) else type(one) is type(other)


def same(one: Any, other: Any) -> bool:
    """Whether two constants of programs are one."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if type(one) is Layout:
        return bool(one.is_same(other))
    if type(one) is MappingProxyType:  # the attributes of a class: a new object each time
        return one.keys() == other.keys() and all(value is other[name] for name, value in one.items())
    if type(one) is MethodType:
        return one.__func__ is other.__func__ and one.__self__ is other.__self__
    if type(one) in (list, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) in (int, float, complex, str, bytes, bool, range, slice, set, frozenset) and repr(one) == repr(
        other
    )


class SizedRegion(Region):
    """The backward part of a program for many sizes, as it is for some of them."""

    source: SizedSource
    text: str

    def __init__(self, joint: Joint, backward: Sequence[Item], saved: Sequence[Value]) -> None:
        self.source = source = SizedSource()
        source.items(in_any_layout(backward, joint.results), [each for each in joint.results if each is not None])
        self.stages = stages_of(source.parts, backward=True)
        source.parts.clear()
        results = ["None" if each is None else f"v{each.number}" for each in joint.results]
        source.lines = [source.unpacked(), *source.lines, f"return [{', '.join(results)}]"]
        self.note_sides(joint, saved)
        self.takes_layouts = self.makes_gradients and all(isinstance(each, Call) for each in backward)
        self.text = "\n".join([*self.parameters, *source.lines])

    def plan(self) -> None:
        """Plan nothing: sizes are not known."""

    def finish(self, like: SizedRegion | None) -> None:
        """Make the function, or take that of another one."""
        made = self.source.function("backward", f"row, {', '.join(self.parameters)}") if like is None else like.function
        self.function: Callable[..., Any] = made
        self.backward = functools.partial(made, tuple(self.source.numbers))

    def _as_they_arrive(self, arriving: Sequence[Any], rest: Sequence[Any]) -> Sequence[Any]:
        results: Sequence[Any] = self.backward(*arriving, *rest)  # no op is planned: each runs as in the plain call
        return results

    def is_as(self, other: SizedRegion) -> bool:
        return self.kinds == other.kinds and self.source.is_as(other.source, self.text, other.text)


def sized_checks(state: State) -> tuple[list[str], str, tuple[Any, ...]]:
    """The checks of a call but for sizes; an expression for the sizes; the sizes of this call."""
    lines = list(state.lines)
    for position, otherwise, _, _ in state.sizes:
        lines[position] = otherwise
    key = f"({''.join([f'{expression}, ' for _, _, expression, _ in state.sizes])})"
    return lines, key, tuple([part for _, _, _, parts in state.sizes for part in parts])


class Rows(dict[tuple[Any, ...], tuple[Any, ...]]):
    """The rows of a table by sizes; it remembers which sizes it was asked for in vain."""

    def __init__(self) -> None:
        self.asked: tuple[Any, ...] | None = None

    def __missing__(self, sizes: tuple[Any, ...]) -> None:
        self.asked = sizes


class AllButSizes:
    """What a call depends on beside sizes."""

    def __init__(self, state: State, settings: tuple[Any, ...]) -> None:
        self._lines, _, _ = sized_checks(state)
        self._settings = settings
        self._constants, self._of_sizes = state.constants, state.of_sizes

    def is_as(self, other: AllButSizes) -> bool:
        """Whether two calls differ in nothing but sizes."""
        if self._settings != other._settings or self._lines != other._lines:
            return False
        return self._constants.keys() == other._constants.keys() and all(
            (_is_like if name in self._of_sizes else same)(value, other._constants[name])
            for name, value in self._constants.items()
        )


class Family:
    """A program for many sizes."""

    def __init__(self, source: SizedSource, text: str, regions: list[SizedRegion]) -> None:
        self._source, self._text, self._regions = source, text, regions
        self.table = Rows()
        self._met: dict[tuple[Any, ...], int] = {}
        """How often sizes have come that have no row."""
        self._before: tuple[Any, ...] = ()
        self.pattern: Any = None
        """What calls with new sizes are compared with while they run; None: they have to be recorded."""
        self._asked: tuple[Any, ...] = ()
        """The sizes of the last call without a row."""
        self._unlike: set[tuple[Any, ...]] = set()
        """The sizes of calls that ran other ops, or other lines."""
        self._larger = 0
        """How many calls in a row had larger sizes than the one before, all without a row."""
        self._is_in_doubt = False
        """Whether the last call that was compared was another program, of which larger sizes may be, too."""
        self.parts: Any = None
        """What the program is written of, to be planned where sizes do not change; None: it stays as it is."""
        self._first: tuple[Any, ...] = ()
        """The row of the recorded call."""
        source.constants["TABLE"] = self.table
        constants = dict(source.constants)
        self.program: Callable[..., Any] = source.function("call", "args, kwargs")
        self._unplanned = self.program
        self.outdated: Callable[..., Any] | None = None
        """The program before this one, in whose place it is still to be put."""
        source.constants = constants  # other calls are compared with these: the facts of this one are no part of them

    def waits(self, dynamic: bool) -> bool:
        """Whether the last call had sizes that are not in the table, and have not come often enough to be recorded.

        The more rows there are, the more often sizes have to come. Those of a cache that grows come once in each
        generation, and to record each of them would take longer than to run it eagerly.
        """
        sizes, self.table.asked = self.table.asked, None
        if sizes is None:
            return False
        self._asked = sizes
        if sizes in self._unlike:
            return False  # another program is for them: it is the next one, or says by itself whether it waits
        if not self.grows:
            self._larger = self._larger + 1 if _is_larger(self._before, sizes) else 0
            self._before = sizes
        times = self._met.pop(sizes, 0) + 1
        if len(self._met) < _MOST_MET:
            self._met[sizes] = times
        return times < self._times_needed(dynamic)

    def _times_needed(self, dynamic: bool) -> int:
        """How often sizes have to come until they get a row; `dynamic`: the user has said that sizes change."""
        further = len(self.table) - 1 - _ROWS_AT_ONCE
        if dynamic and (self.follows() or len(self.table) <= _ROWS_AT_FIRST_SIGHT):
            return 1
        if self.follows() or self._is_in_doubt:
            return _FOLLOWED_IF_GROWING if self.grows else _FOLLOWED
        if self.grows:
            return _MOST_OFTEN
        return 2 if further < 0 else min(4 << further, _MOST_OFTEN)

    def follows(self) -> bool:
        """Whether the last call can be compared with a recorded one while it runs, and need not be recorded."""
        return (
            self.pattern is not None
            and not self._is_in_doubt
            and self._asked not in self._unlike
            and len(self.table) < _MOST_ROWS
        )

    @property
    def is_overdue(self) -> bool:
        """Whether the sizes of the last call have come so often that a row pays in any case."""
        return self.follows() and self._met.get(self._asked, 0) >= _OVERDUE

    def distance(self) -> int:
        """How far the sizes of the last call are from those of the nearest row: near ones run the same kernels."""
        asked = sum(_numbers(self._asked))
        return min([abs(asked - sum(_numbers(each))) for each in self.table], default=0)

    def follow(self, attempt: Any) -> None:
        """Make a call with new sizes, and add a row for it if it does what the recorded one did."""
        sizes = self._asked
        numbers = self.pattern.row(attempt)
        if numbers is not None:
            self._add(numbers, sizes, self.pattern.moved)
        elif len(self._unlike) < _MOST_UNLIKE:
            self._unlike.add(sizes)
            self._is_in_doubt = self.grows
        else:
            self.pattern = None

    def goes_on_from(self, other: Family) -> None:
        """Know how often sizes have come that another program met before there was this one."""
        self._met, self._larger = dict(other._met), other._larger

    def told(self) -> str:
        """Why the last call has no row, in words."""
        parts = iter(self._asked)
        shown = [str(list(each)) if type(each) is tuple and next(parts) is not None else str(each) for each in parts]
        return f"there is no program yet for the sizes {', '.join(shown)}"

    @property
    def grows(self) -> bool:
        """Whether calls have sizes that grow, as those of a cache."""
        return self._larger >= _GROWS

    @property
    def waiting(self) -> frozenset[tuple[Any, ...]]:
        """The sizes that have come and have no row."""
        return frozenset(self._met)

    def takes(
        self, source: SizedSource, text: str, regions: list[SizedRegion], sizes: tuple[Any, ...], items: Sequence[Item]
    ) -> bool:
        """Let a call with other sizes in, which ran such items, if it is the same program."""
        if len(self.table) >= _MOST_ROWS or len(regions) != len(self._regions):
            return False
        pairs = list(zip(regions, self._regions, strict=True))
        if not source.is_as(self._source, text, self._text) or not all(each.is_as(own) for each, own in pairs):
            return False
        for each, own in pairs:
            each.finish(own)
        moved = None if self.pattern is None else self.pattern.moved_in(items)
        if moved is None:
            self._unplan()
            self.parts = None
        self._add(source.numbers, sizes, moved)
        return True

    def add(self, source: SizedSource, sizes: tuple[Any, ...]) -> None:
        """Add the first row."""
        self._add(source.numbers, sizes, set())

    def _add(self, numbers: list[Any], sizes: tuple[Any, ...], moved: set[int] | None) -> None:
        """Add a row of a call in which such ops had other sizes than in the recorded one."""
        if self.parts is not None and moved is not None and self.parts.moves(moved):
            self._unplan()
        row = tuple([each.node if isinstance(each, SizedRegion) else each for each in numbers])
        self._first = self._first or row
        self.table[sizes] = self._taken(row)
        self._met.pop(sizes, None)
        if self.parts is not None and self.parts.is_due(len(self.table)):
            self._plan()

    def _taken(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the program takes of a row."""
        kept = None if self.parts is None else self.parts.kept
        return row if kept is None else tuple([row[number] for number in kept])

    def _plan(self) -> None:
        """Let what has one size in all calls run by schedules."""
        made = self.parts.planned(self.table)
        if made is not None:
            self.table.update({sizes: self._taken(row) for sizes, row in self.table.items()})
            self._renew(made)

    def _unplan(self) -> None:
        """Run all ops one by one again."""
        kept = None if self.parts is None else self.parts.kept
        if kept is None:
            return
        for sizes, taken in self.table.items():
            row = [*self._first]
            for number, value in zip(kept, taken, strict=True):
                row[number] = value
            self.table[sizes] = tuple(row)
        self.parts.kept = None
        self._renew(self._unplanned)

    def _renew(self, program: Callable[..., Any]) -> None:
        self.outdated, self.program = self.outdated or self.program, program


def _is_larger(before: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
    """Whether no size is smaller than before, and some are larger."""
    pairs = list(zip(_numbers(before), _numbers(now), strict=False))
    return len(before) == len(now) and all(one <= other for one, other in pairs) and before != now


def _numbers(sizes: Any) -> list[int]:
    return [number for each in sizes for number in _numbers(each)] if type(sizes) is tuple else [sizes]


def family_of(
    families: list[Family], source: SizedSource, sizes: tuple[Any, ...], items: Sequence[Item]
) -> Family | None:
    """A new family for a call that ran such items, or None if one of those there takes it."""
    text = "\n".join(source.lines)
    regions = [each for each in source.numbers if isinstance(each, SizedRegion)]
    for family in families:
        family._is_in_doubt = False
    if any(each.takes(source, text, regions, sizes, items) for each in families):
        return None
    for each in regions:
        each.finish(None)
    made = Family(source, text, regions)
    made.add(source, sizes)
    if families:
        made.goes_on_from(families[-1])
    families.append(made)
    return made
