"""The first call of a schedule: it runs after the ops that it stands for, on what these were given.

A schedule that does not give the same bits is never run again; the ops are, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._backends.tiers import free_idle_memory, generated
from .._errors import report_fault
from ..program.items import Call, Value, uses, values_in
from ..program.lower import lowered
from .schedule import Array
from .segment import Segment, extent_of

_LARGE = 1 << 17
"""Bytes of an array that is not kept to be compared with another: sums of it are."""
_COLUMNS = 512

Print = tuple[object, ...]
"""What two arrays have in common that have the same bits, in the same order of memory."""


class FirstRun:
    """Stands for the call of a schedule, until it is known whether the schedule is right."""

    def __init__(self, segment: Segment, settle: Callable[[Callable[..., bool]], None]) -> None:
        self._segment = segment
        self._settle = settle
        """Puts another function in the place of this one."""

    def __call__(self, table: Any, done: bool, refused: bool, *arrays: Array) -> bool:
        """What the schedule does on arrays, inputs first; False: the ops have to run, and nothing has been done.

        The ops run before the schedule has its memory, and leave prints of their results. So there are never two of
        them, and this call takes no more memory than one without a schedule.
        """
        given = dict(zip(self._segment.inputs, arrays, strict=False))
        made = arrays[len(given) :]
        shapes = [each.shape for each in made]
        before: dict[int, Array] = {}
        expected: dict[int, Print] | None = None
        try:
            before.update({number: _copied(given[number]) for number in self._segment.changed})
            expected = self._expected(given, made, before)
        except Exception as error:
            self._failed(error)
        for array, shape in zip(made, shapes, strict=True):
            if array.shape != shape:
                array.resize(shape, refcheck=False)
        if expected is None or not self._segment.runner.run(table, done, refused, *arrays):
            return False
        try:
            if all(expected[number] == _print(each) for number, each in _results(self._segment, given, made)):
                self._settle(self._segment.runner.run)
                return True
        except Exception as error:
            self._failed(error)
        for number, array in before.items():
            np.copyto(given[number], array)
        self._settle(_refusing)
        return False

    def _expected(
        self, given: dict[int, Array], made: Sequence[Array], before: dict[int, Array]
    ) -> dict[int, Print] | None:
        """Prints of what the ops make; None: they raise an error, as they will again."""
        segment = self._segment
        beside = {number: _copied(array) for number, array in before.items()}
        wanted = {*segment.changed, *[number for output in segment.outputs for number, _ in output.windows]}
        for array in made:
            _let_go(array)
        try:
            unread = {number: _unread(each) for number, each in segment.untouched.items()}
            return _prints(segment, {**unread, **given, **beside}, wanted)
        except Exception:  # run again, they change what they change up to there, and raise it
            return None
        finally:
            beside.clear()
            free_idle_memory()

    def _failed(self, error: Exception) -> None:
        """Run the ops one by one from now on: to prove a schedule has failed."""
        self._settle(_refusing)
        report_fault("the first run of a schedule", error)


def _unread(array: Any) -> Array:
    """What ops look at from outside, as an array of NumPy's: the memory of an abstract array is gone."""
    if type(array) is np.ndarray:
        return array
    header: Array = generated("call_list").header_of(array.shape, array.dtype, array.strides)
    return header


def _refusing(*args: Any) -> bool:
    return False


def _let_go(array: Array) -> None:
    """Leave a large new array, of which nobody else knows yet, the memory of a few elements, in the same order."""
    if array.nbytes >= _LARGE and array.flags.owndata and array.flags.forc:
        array.resize([min(size, 2) for size in array.shape], refcheck=False)


def _results(segment: Segment, given: dict[int, Array], memory: Sequence[Array]) -> Iterator[tuple[int, Array]]:
    """The values that a schedule makes or changes, where they lie."""
    for output, base in zip(segment.outputs, memory, strict=True):
        for number, place in output.windows:
            header = place.header
            is_whole = header is output.like
            yield (
                number,
                base if is_whole else np.ndarray(header.shape, header.dtype, base, place.offset, header.strides),
            )
    for number in segment.changed:
        yield number, given[number]


def _prints(segment: Segment, values: dict[int, Array], wanted: set[int]) -> dict[int, Print]:
    """Prints of what the ops make of values; what is not needed any more is let go.

    Where ops change arrays, these are looked at in the end.
    """
    items = segment.items
    changing = any(item.op.writes for item in items)
    last = {value.number: position for position, item in enumerate(items) for value in uses(item)}
    found: dict[int, Print] = {}
    for position, item in enumerate(items):
        _run(item, values)
        for value in {*values_in(item.args), *values_in(item.results)}:
            number = value.number
            if changing and number in wanted:
                continue
            if number in wanted and number not in found:
                found[number] = _print(values[number])
            if last.get(number, -1) <= position:
                values.pop(number, None)
    return {number: _print(values[number]) for number in wanted} if changing else found


def _run(item: Call, values: dict[int, Array]) -> None:
    """Run an op on values, and add its results to them."""
    results = lowered(item)(*[_arrays(each, values) for each in item.args])
    for value, result in zip(*_lists(item.results, results), strict=True):
        if type(value) is Value:
            values[value.number] = np.asarray(result)


def _print(array: Array) -> Print:
    """The strides and all bits of a small array; of a large one sums of its bits by rows and by columns."""
    order = sorted(range(array.ndim), key=lambda dim: -abs(array.strides[dim]))
    content = np.ascontiguousarray(array.transpose(order)).reshape(-1).view(np.uint8)
    whole = 0 if array.nbytes < _LARGE else content.size // (8 * _COLUMNS) * (8 * _COLUMNS)
    rows = content[:whole].view(np.uint64).reshape(-1, _COLUMNS)
    return array.strides, rows.sum(0).tobytes(), rows.sum(1).tobytes(), content[whole:].tobytes()


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
