"""The first call of a tape: it runs beside the ops that it stands for, on what these are given.

A tape that does not give the same bits is never run again; the ops are, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._backends.tiers import free_idle_memory
from .._lower import lowered
from .._program import Call, Value, uses, values_in
from .segment import Segment, extent_of
from .sheet import Array


class Proof:
    """Stands for the call of a tape, until it is known whether the tape is right."""

    def __init__(self, segment: Segment, settle: Callable[[Callable[..., bool]], None]) -> None:
        self._segment = segment
        self._settle = settle
        """Puts another function in the place of this one."""

    def __call__(self, table: Any, done: bool, refused: bool, *arrays: Array) -> bool:
        """What the tape does on arrays, inputs first; False: the ops have to run, and nothing has been done."""
        segment = self._segment
        given = dict(zip(segment.inputs, arrays, strict=False))
        made = _named(segment, arrays[len(given) :])
        before, beside = ({number: _copied(given[number]) for number in segment.changed} for _ in range(2))
        free_idle_memory()  # it is for ops that run one by one: tapes have memory themselves
        if not segment.tape.run(table, done, refused, *arrays):
            return False
        made |= {number: given[number] for number in segment.changed}
        is_right = _is_right(segment, {**segment.untouched, **given, **beside}, made)
        free_idle_memory()
        if is_right:
            self._settle(segment.tape.run)
            return True
        for number, array in before.items():
            np.copyto(given[number], array)
        self._settle(_refusing)
        return False


def _refusing(*args: Any) -> bool:
    return False


def _named(segment: Segment, memory: Sequence[Array]) -> dict[int, Array]:
    """The values that lie in the memory that a tape fills."""
    found: dict[int, Array] = {}
    for output, base in zip(segment.outputs, memory, strict=True):
        for number, place in output.windows:
            header = place.header
            is_whole = header is output.like
            found[number] = (
                base if is_whole else np.ndarray(header.shape, header.dtype, base, place.offset, header.strides)
            )
    return found


def _is_right(segment: Segment, values: dict[int, Array], made: dict[int, Array]) -> bool:
    """Whether the ops make of values what the tape has made; what is not needed any more is let go.

    What is the same is taken from the tape from then on, so that there are not two of it. Where ops change arrays, that
    is seen at the end.
    """
    items = segment.items
    changing = any(item.op.writes for item in items)
    last = {value.number: position for position, item in enumerate(items) for value in uses(item)}
    for position, item in enumerate(items):
        if not _is_run(item, values, {} if changing else made):
            return False
        for value in {*values_in(item.args), *values_in(item.results)}:
            if last.get(value.number, -1) <= position and not (changing and value.number in made):
                values.pop(value.number, None)
    return not changing or all(_is_same(made[number], array) for number, array in values.items() if number in made)


def _is_run(item: Call, values: dict[int, Array], made: dict[int, Array]) -> bool:
    """Run an op; whether its results are those that were made, as far as these are known."""
    results = lowered(item)(*[_arrays(each, values) for each in item.args])
    for value, result in zip(*_lists(item.results, results), strict=True):
        if type(value) is Value:
            array = np.asarray(result)
            if not _is_same(made.get(value.number, array), array):
                return False
            values[value.number] = made.get(value.number, array)
    return True


def _is_same(one: Array, other: Array) -> bool:
    """Whether two arrays have the same bits, in the same order of memory."""
    return one is other or (one.strides == other.strides and np.array_equal(_bits(one), _bits(other)))


def _bits(array: Array) -> Array:
    """The elements of an array as integers, in the order of memory."""
    order = sorted(range(array.ndim), key=lambda dim: -abs(array.strides[dim]))
    return np.ascontiguousarray(array.transpose(order)).view(f"u{array.itemsize}")


def _copied(array: Array) -> Array:
    """A copy in memory of its own, with the same strides."""
    low, high = extent_of(array)
    made: Array = np.ndarray(array.shape, array.dtype, np.empty(high - low, np.uint8), -low, array.strides)
    np.copyto(made, array)
    return made


def _lists(values: Any, results: Any) -> tuple[list[Any], list[Any]]:
    return (values, results) if type(values) is list else ([values], [results])


def _arrays(tree: Any, values: dict[int, Any]) -> Any:
    if type(tree) is Value:
        return values[tree.number]
    return type(tree)([_arrays(each, values) for each in tree]) if type(tree) in (list, tuple) else tree
