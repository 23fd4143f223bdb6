"""A stretch of a program as a tape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._backends.tiers import generated
from .._lower import lowered
from .._program import Call, Item, Value, uses, values_in
from .draft import Draft
from .fuse import fused
from .memory import arranged
from .sheet import Array, Buffer, Place

_LEAST_CALLS = 2
"""One call alone is as quick from Python."""


@dataclass
class Output:
    """New memory that the tape fills, for values that are needed later."""

    like: Array
    """An array like the one that is to be made."""
    windows: list[tuple[int, Place]]
    """The values that lie in it: one that fills it, or several."""


@dataclass
class Segment:
    """Ops that are run by a tape; `items` are run one by one where that refuses."""

    items: list[Call]
    inputs: list[int]
    outputs: list[Output]
    windows: list[Call]
    """Ops that look at inputs in another way, or make constants, for those who come later."""
    tape: Any

    def run(self, given: dict[int, Array]) -> dict[int, Array] | None:
        """The values that it makes of given ones; None: it refuses."""
        made: list[Array] = []
        found: dict[int, Array] = {}
        for output in self.outputs:
            base = np.empty_like(output.like)
            made.append(base)
            for number, place in output.windows:
                header = place.header
                found[number] = (
                    base
                    if header is output.like
                    else np.ndarray(header.shape, header.dtype, base, place.offset, header.strides)
                )
        done = self.tape.run(self.tape.table, True, False, *[given[number] for number in self.inputs], *made)
        return found if done else None


def segments(items: Sequence[Item], kept: Iterable[Value]) -> list[Item | Segment]:
    """The items, with segments in place of those that tapes can run."""
    if generated("tape") is None:
        return list(items)
    last: dict[int, int] = {each.number: len(items) for each in kept}
    for position, item in enumerate(items):
        for value in uses(item):
            last[value.number] = max(last.get(value.number, 0), position)
    found: list[Item | _Plan] = []
    draft = Draft()
    for position, item in enumerate(items):
        if type(item) is Call and draft.add(item):
            continue
        found += _closed(draft, position, last)
        draft = Draft()
        if type(item) is not Call or not draft.add(item):
            found.append(item)
    found += _closed(draft, len(items), last)
    # They run one after the other, and nothing that is needed later stays in there.
    arena = generated("tape").Arena(max([each.size for each in found if isinstance(each, _Plan)], default=0))
    made = [_run_by_tape(each, arena) if isinstance(each, _Plan) else [each] for each in found]
    return [part for parts in made for part in parts]


@dataclass
class _Plan:
    """A draft with everything but memory."""

    draft: Draft
    inputs: list[int]
    outputs: list[Output]
    windows: list[Call]
    arguments: dict[Buffer, int]
    """Which array of a call of the tape a buffer is."""
    starts: dict[Buffer, int]
    """Where in the memory between the calls the others begin."""
    size: int
    """How much of that there has to be."""


def _closed(draft: Draft, position: int, last: dict[int, int]) -> list[Item | _Plan]:
    """What a draft has come to, if the item at `position` is the next one."""
    if sum([len(launch.calls) for launch in draft.sheet.launches]) < _LEAST_CALLS:
        return [*draft.items]
    made = [value.number for item in draft.items for value in values_in(item.results)]
    wanted = [number for number in made if last.get(number, -1) >= position and number not in draft.given]
    return [_planned(draft, list(dict.fromkeys(wanted)))]


def _run_by_tape(plan: _Plan, arena: Any) -> Sequence[Item | Segment]:
    """The segment of a plan, or its items where that would not do the same."""
    draft = plan.draft
    segment = Segment(draft.items, plan.inputs, plan.outputs, plan.windows, _tape(plan, arena))
    return [segment] if _is_right(segment, draft) else draft.items


def _planned(draft: Draft, wanted: list[int]) -> _Plan:
    windows: list[int] = []
    by_buffer: dict[Buffer, list[tuple[int, Place]]] = {}
    for number in wanted:
        place = draft.places[number]
        if place.buffer.given is not None or place.buffer.content is not None:
            windows.append(number)
        else:
            by_buffer.setdefault(place.buffer, []).append((number, place))
    draft.sheet.launches = fused(draft.sheet.launches, {*by_buffer, *draft.sheet.changed}, generated("pointwise"))
    outputs = [Output(_base(buffer, values), values) for buffer, values in by_buffer.items()]
    launches = draft.sheet.launches
    touched = {place.buffer.given for launch in launches for place in (*launch.reads, *launch.writes)}
    inputs = [number for number in draft.given if number in touched]
    arguments: dict[Buffer, int] = {}
    for place in draft.places.values():
        if place.buffer.given in inputs:
            arguments[place.buffer] = inputs.index(place.buffer.given)
    arguments.update({buffer: number for number, buffer in enumerate(by_buffer, len(inputs))})
    starts, size = arranged(launches, draft.sheet.refusals, arguments)
    return _Plan(draft, inputs, outputs, _leading_to(windows, draft.items), arguments, starts, size)


def _base(buffer: Buffer, values: list[tuple[int, Place]]) -> Array:
    """What an array that holds values is like."""
    header = values[0][1].header
    if len(values) == 1 and header.nbytes == buffer.size and not values[0][1].offset:
        return header
    return np.empty(buffer.size, np.uint8)


def _leading_to(wanted: list[int], items: Sequence[Call]) -> list[Call]:
    """The items that make the wanted values of what is given, in order."""
    needed = set(wanted)
    found: list[Call] = []
    for item in reversed(items):
        if not needed.isdisjoint([each.number for each in values_in(item.results)]):
            needed.update([each.number for each in values_in(item.args)])
            found.append(item)
    return found[::-1]


def _tape(plan: _Plan, arena: Any) -> Any:
    """The calls, with arrays in the place of places, and memory for what lies between."""
    family, draft = generated("tape"), plan.draft
    launches = draft.sheet.launches
    headers: dict[int, Array] = {}
    windows: list[tuple[int, Array, int]] = []
    touched = [place for launch in launches for place in (*launch.reads, *launch.writes)]
    for place in (*touched, *draft.sheet.refusals):
        header, buffer = place.header, place.buffer
        if id(header) in headers:
            continue
        headers[id(header)] = header
        if buffer in plan.arguments:
            windows.append((plan.arguments[buffer], header, place.offset))
        elif buffer.content is not None:
            family.point(header, family.address_of(buffer.content) + place.offset)
        else:
            family.point(header, arena.start + plan.starts[buffer] + place.offset)
    calls = [
        (function, _with_arrays(args), None if options is None else {"out": options["out"].header})
        for launch in launches
        for function, args, options in launch.calls
    ]
    tape = family.Tape(
        windows, calls, [each.header for each in draft.sheet.refusals], draft.sheet.conditions, *_shares(plan), arena
    )
    tape.scratch = plan.size
    tape.constants = [place.buffer.content for launch in launches for place in launch.reads]
    return tape


def _shares(plan: _Plan) -> tuple[list[tuple[int, int]], list[int]]:
    """From where to where the arrays of a call reach, counted from their beginnings, and which of them change."""
    arrays = [*[plan.draft.given[number] for number in plan.inputs], *[each.like for each in plan.outputs]]
    changed = {each.given for each in plan.draft.sheet.changed}
    return list(map(_extent, arrays)), [number for number, value in enumerate(plan.inputs) if value in changed]


def _extent(array: Array) -> tuple[int, int]:
    """Between how many bytes from its beginning the elements of an array are."""
    reach = [(size - 1) * step for size, step in zip(array.shape, array.strides, strict=True)]
    return sum([min(each, 0) for each in reach]), sum([max(each, 0) for each in reach]) + array.itemsize


def _with_arrays(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        [each.header if type(each) is Place else _with_arrays(each) if type(each) is tuple else each for each in args]
    )


def _is_right(segment: Segment, draft: Draft) -> bool:
    """Whether the tape gives what the ops give, to the bit, on what they were given when they were recorded."""
    changed = {each.given for each in draft.sheet.changed}
    values: dict[int, Any]
    given: dict[int, Array]
    values, given = (
        {number: _copied(array) if number in changed else array for number, array in draft.given.items()}
        for _ in range(2)
    )
    made = segment.run(given)
    if made is None:
        return False
    made.update([(number, given[number]) for number in given if number in changed])
    last = {value.number: position for position, item in enumerate(segment.items) for value in uses(item)}
    for position, item in enumerate(segment.items):
        results = lowered(item)(*[_arrays(each, values) for each in item.args])
        for value, result in zip(*_lists(item.results, results), strict=True):
            if type(value) is Value:
                values[value.number] = np.asarray(result)
        for value in (*values_in(item.args), *values_in(item.results)):  # there may be no memory for all of them
            if last.get(value.number, -1) <= position and value.number not in made:
                values.pop(value.number, None)
    return all(
        values[number].tobytes() == array.tobytes() and values[number].strides == array.strides
        for number, array in made.items()
    )


def _copied(array: Array) -> Array:
    """A copy in memory of its own, with the same strides."""
    low, high = _extent(array)
    made: Array = np.ndarray(array.shape, array.dtype, np.empty(high - low, np.uint8), -low, array.strides)
    np.copyto(made, array)
    return made


def _lists(values: Any, results: Any) -> tuple[list[Any], list[Any]]:
    return (values, results) if type(values) is list else ([values], [results])


def _arrays(tree: Any, values: dict[int, Any]) -> Any:
    if type(tree) is Value:
        return values[tree.number]
    return type(tree)([_arrays(each, values) for each in tree]) if type(tree) in (list, tuple) else tree
