"""A segment of a program as a schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..._backends.tiers import generated
from ..._core.arrays.abstract import AbstractArray, empty_meta
from ..program.items import Call, Item, Value, uses, values_in
from .builder import ScheduleBuilder
from .fuse import fused
from .memory import arranged, lodged
from .schedule import Array, Buffer, Launch, Place

_MOST_TOGETHER = 1 << 19
"""Bytes that the ops of one schedule may make: what they are given, and what is needed later, stays until it ends."""

_LEAST_CALLS = 2
"""One call alone is as quick from Python."""


@dataclass
class Output:
    """New memory that the schedule fills, for values that are needed later."""

    like: AbstractArray
    """What the array that is to be made is like."""
    windows: list[tuple[int, Place]]
    """The values that lie in it: one that fills it, or several."""


@dataclass
class Segment:
    """Ops that are run by a schedule; `items` are run one by one where that refuses."""

    items: list[Call]
    inputs: list[int]
    outputs: list[Output]
    windows: list[Call]
    """Ops that look at inputs in another way, or make constants, for those who come later."""
    runner: Any
    changed: list[int]
    """The inputs that it writes to."""
    untouched: dict[int, Array]
    """What the ops are given and look at from outside only, as it was when they were recorded."""


def segments(
    items: Sequence[Item], kept: Iterable[Value], may_be_planned: Callable[[Item], bool] | None = None
) -> list[Item | Segment]:
    """The items, with segments in place of those that schedules can run, and that may be planned."""
    if generated("call_list") is None:
        return list(items)
    last: dict[int, int] = {each.number: len(items) for each in kept}
    for position, item in enumerate(items):
        for value in uses(item):
            last[value.number] = max(last.get(value.number, 0), position)
    found: list[Item | _Plan] = []
    builder = ScheduleBuilder()
    for position, item in enumerate(items):
        call = item if type(item) is Call and (may_be_planned is None or may_be_planned(item)) else None
        if call is not None and builder.add(call):
            if builder.size > _MOST_TOGETHER:
                found += _closed(builder, position + 1, last)
                builder = ScheduleBuilder()
            continue
        found += _closed(builder, position, last)
        builder = ScheduleBuilder()
        if call is None or not builder.add(call):
            found.append(item)
    found += _closed(builder, len(items), last)
    # They run one after the other, and nothing that is needed later stays in there.
    family = generated("call_list")
    sizes = [each.size for each in found if isinstance(each, _Plan) and each.size < family.FROM_POOL]
    arena = family.Arena(max(sizes, default=0))
    return [_run_by_call_list(each, arena) if isinstance(each, _Plan) else each for each in found]


@dataclass
class _Plan:
    """A builder with everything but memory."""

    builder: ScheduleBuilder
    launches: Sequence[Launch]
    """The launches of the segment, some of which may be made as one."""
    inputs: list[int]
    outputs: list[Output]
    windows: list[Call]
    arguments: dict[Buffer, int]
    """Which array of a call of the schedule a buffer is."""
    lodged: dict[Buffer, tuple[Buffer, int]]
    """Which of the others begin where in one of these."""
    starts: dict[Buffer, int]
    """Where in the memory between the calls the rest begin."""
    size: int
    """How much of that there has to be."""


def _closed(builder: ScheduleBuilder, position: int, last: dict[int, int]) -> list[Item | _Plan]:
    """What a builder has come to, if the item at `position` is the next one."""
    if sum([len(launch.calls) for launch in builder.schedule.launches]) < _LEAST_CALLS:
        return [*builder.items]
    made = [value.number for item in builder.items for value in values_in(item.results)]
    wanted = [number for number in made if last.get(number, -1) >= position and number not in builder.given]
    return [_planned(builder, list(dict.fromkeys(wanted)))]


def _run_by_call_list(plan: _Plan, arena: Any) -> Segment:
    """The segment of a plan."""
    builder = plan.builder
    changed = {each.given for each in builder.schedule.changed}
    written = [number for number in plan.inputs if number in changed]
    untouched = {number: array for number, array in builder.given.items() if number not in plan.inputs}
    return Segment(builder.items, plan.inputs, plan.outputs, plan.windows, _runner(plan, arena), written, untouched)


def _planned(builder: ScheduleBuilder, wanted: list[int]) -> _Plan:
    """The plan of a builder with elementwise launches fused, unless somebody has them timed, and they are slower so."""
    windows: list[int] = []
    by_buffer: dict[Buffer, list[tuple[int, Place]]] = {}
    for number in wanted:
        place = builder.places[number]
        if place.buffer.given is not None or place.buffer.content is not None:
            windows.append(number)
        else:
            by_buffer.setdefault(place.buffer, []).append((number, place))
    split = builder.schedule.launches
    together = fused(split, {*by_buffer, *builder.schedule.changed}, generated("pointwise"))
    plan = _with_launches(builder, together, windows, by_buffer)
    choices = generated("choices")
    if not choices.is_tuning() or len(together) == len(split):
        return plan
    apart = _with_launches(builder, split, windows, by_buffer)
    ways = {"fused": partial(_on_example, plan), "apart": partial(_on_example, apart)}
    return plan if choices.quickest("segment", _facts(split), ways) == "fused" else apart


def _with_launches(
    builder: ScheduleBuilder,
    launches: Sequence[Launch],
    windows: list[int],
    by_buffer: dict[Buffer, list[tuple[int, Place]]],
) -> _Plan:
    outputs = [Output(_base(buffer, values), values) for buffer, values in by_buffer.items()]
    touched = {place.buffer.given for launch in launches for place in (*launch.reads, *launch.writes)}
    inputs = [number for number in builder.given if number in touched]
    arguments: dict[Buffer, int] = {}
    for place in builder.places.values():
        if place.buffer.given in inputs:
            arguments[place.buffer] = inputs.index(place.buffer.given)
    arguments.update({buffer: number for number, buffer in enumerate(by_buffer, len(inputs))})
    refusals = builder.schedule.refusals
    # Large new arrays begin where vectors may, as the memory between the calls does.
    hosts = [buffer for buffer in by_buffer if buffer.size >= generated("call_list").FROM_POOL]
    inside = lodged(launches, refusals, arguments, hosts)
    starts, size = arranged(launches, refusals, {*arguments, *inside})
    leading = _leading_to(windows, builder.items)
    return _Plan(builder, launches, inputs, outputs, leading, arguments, inside, starts, size)


def _on_example(plan: _Plan) -> Callable[[], bool]:
    """A call of a schedule on arrays of its own, whose elements are such that all of its kernels take them."""
    runner = _runner(plan, generated("call_list").Arena(plan.size))
    arrays = [_example_like(plan.builder.given[number]) for number in plan.inputs]
    arrays += [np.ndarray(each.like.shape, each.like.dtype, None, 0, each.like.strides) for each in plan.outputs]

    def run() -> bool:  # it holds the schedule, which holds what its table names by address
        done: bool = runner.run(runner.table, True, False, *arrays)
        return done

    return run


def _example_like(array: Array) -> Array:
    """An array with the same strides: of ones, or of integers that may be positions anywhere."""
    low, high = extent_of(array)
    made: Array = np.ndarray(array.shape, array.dtype, np.zeros(high - low, np.uint8), -low, array.strides)
    if array.dtype.kind == "f":
        made.fill(1)
    return made


def _facts(launches: Sequence[Launch]) -> list[Any]:
    """What launches do, and on which arrays."""

    def described(arg: Any) -> Any:
        if type(arg) is Place:
            return arg.header.shape, arg.header.strides, arg.header.dtype.str
        return [described(each) for each in arg] if type(arg) is tuple else type(arg).__name__

    return [
        (launch.step, getattr(function, "__name__", ""), described(args))
        for launch in launches
        for function, args, _ in launch.calls
    ]


def _base(buffer: Buffer, values: list[tuple[int, Place]]) -> AbstractArray:
    """What an array that holds values is like."""
    header = values[0][1].header
    if len(values) == 1 and header.nbytes == buffer.size and not values[0][1].offset:
        return header
    return empty_meta((buffer.size,), np.dtype(np.uint8))


def _leading_to(wanted: list[int], items: Sequence[Call]) -> list[Call]:
    """The items that make the wanted values of what is given, in order."""
    needed = set(wanted)
    found: list[Call] = []
    for item in reversed(items):
        if not needed.isdisjoint([each.number for each in values_in(item.results)]):
            needed.update([each.number for each in values_in(item.args)])
            found.append(item)
    return found[::-1]


def _runner(plan: _Plan, arena: Any) -> Any:
    """The calls, with arrays in the place of places, and memory for what lies between."""
    family, builder = generated("call_list"), plan.builder
    workspace = plan.size if plan.size >= family.FROM_POOL else 0
    launches = plan.launches
    headers: dict[int, Array] = {}
    windows: list[tuple[int, Array, int]] = []
    touched = [place for launch in launches for place in (*launch.reads, *launch.writes)]
    for place in (*touched, *builder.schedule.refusals):
        buffer = place.buffer
        if id(place.header) in headers:
            continue
        geometry = place.header.shape, place.header.dtype, place.header.strides
        header = headers[id(place.header)] = family.header_of(*geometry)
        if buffer in plan.arguments:
            windows.append((plan.arguments[buffer], header, place.offset))
        elif buffer in plan.lodged:
            host, start = plan.lodged[buffer]
            windows.append((plan.arguments[host], header, start + place.offset))
        elif buffer.content is not None:
            family.point(header, family.address_of(buffer.content) + place.offset)
        elif workspace:
            windows.append((len(plan.inputs) + len(plan.outputs), header, plan.starts[buffer] + place.offset))
        else:
            family.point(header, arena.start + plan.starts[buffer] + place.offset)
    calls = []
    for function, args, options in [each for launch in launches for each in launch.calls]:
        named = None if options is None else {"out": headers[id(options["out"].header)]}
        calls.append((function, _with_arrays(args, headers), named))
    refusals = [headers[id(each.header)] for each in builder.schedule.refusals]
    runner = family.CallList(windows, calls, refusals, builder.schedule.conditions, *_shares(plan), arena, workspace)
    runner.scratch = plan.size
    runner.constants = [place.buffer.content for launch in launches for place in launch.reads]
    return runner


def _shares(plan: _Plan) -> tuple[list[tuple[int, int]], list[int]]:
    """From where to where the arrays of a call reach, counted from their beginnings, and which of them change."""
    arrays: list[Any] = [plan.builder.given[number] for number in plan.inputs]
    arrays += [each.like for each in plan.outputs]
    changed = {each.given for each in plan.builder.schedule.changed}
    return list(map(extent_of, arrays)), [number for number, value in enumerate(plan.inputs) if value in changed]


def extent_of(array: Any) -> tuple[int, int]:
    """Between how many bytes from its beginning the elements of an array are."""
    reach = [(size - 1) * step for size, step in zip(array.shape, array.strides, strict=True)]
    return sum([min(each, 0) for each in reach]), sum([max(each, 0) for each in reach]) + array.itemsize


def _with_arrays(args: tuple[Any, ...], headers: dict[int, Array]) -> tuple[Any, ...]:
    """Arguments with arrays in the place of places."""
    found: list[Any] = []
    for each in args:
        if type(each) is Place:
            found.append(headers[id(each.header)])
        else:
            found.append(_with_arrays(each, headers) if type(each) is tuple else each)
    return tuple(found)
