"""Which values of a program lie in the same memory, and what becomes of that memory.

The arrays of the recorded call are all still there: what overlaps among those that the program makes overlaps in every
call. Those that were there before may overlap in another way the next time: what changes one may change any. While a
pass lets one value take the place of another, `join` keeps account of that. The passes behind it see that a value
stands where the recorded call had an array from elsewhere: its memory is that one's, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..._core.tensor import Tensor
from ..program.items import Call, Item, Outside, Read, SetGrad, Value, uses, values_in
from ..program.reads import bounds


class Memory:
    """The values of a program by the memory that they are in."""

    def __init__(self, items: Sequence[Item], wanted: Iterable[Value]) -> None:
        self.items = items
        self.arrays: dict[int, Any] = {}
        """The array of each value in the recorded call."""
        self.made: dict[int, int] = {}
        """Which item makes a value; those that were there before are made by none."""
        self._read: dict[int, list[int]] = {}
        self._handed_out = {each.number for each in wanted}
        self._written: dict[int, int] = {}
        self._outside = -1
        self._replaced: list[tuple[int, Any]] = []
        """Values that have taken the place of others, with the arrays of these in the recorded call."""
        for position, item in enumerate(items):
            self._note(position, item)
        places = {-1 - at: array for at, (_, array) in enumerate(self._replaced)}
        self._group = _overlapping(self.arrays | places)
        self._members: dict[int, set[int]] = {}
        for number, group in self._group.items():
            self._members.setdefault(group, set()).add(number)
        for place, (number, _) in zip(places, self._replaced, strict=True):
            self.join(number, place)
        for place in places:
            self.beside(place).remove(place)
        changes = [at for number, at in self._written.items() if not self.made.keys() >= self.beside(number)]
        self._changed = max(changes, default=-1)
        """The last item that changes what was there before."""

    def _note(self, position: int, item: Item) -> None:
        for value in uses(item):
            self._read.setdefault(value.number, []).append(position)
        if isinstance(item, Outside):
            self._outside = position
        elif isinstance(item, SetGrad):
            if item.value is not None:
                self._handed_out.add(item.value.number)
        elif isinstance(item, (Call, Read)):
            call = item.call if isinstance(item, Read) else item
            self._note_arrays(call.args, call.examples)
            for value in values_in(call.results):
                if value.number not in self.arrays:  # else the op gives back the very array that it was given
                    self.made[value.number] = position
            self._note_arrays(call.results, call.made)
            for at in call.op.writes:
                for value in values_in(call.args[at]):
                    self._written[value.number] = position

    def _note_arrays(self, tree: Any, example: Any) -> None:
        if type(tree) is Value:
            array = example._array if isinstance(example, Tensor) else example
            known = self.arrays.setdefault(tree.number, array)
            if known is not array and bounds(known) != bounds(array):
                self._replaced.append((tree.number, array))
        elif type(tree) in (list, tuple):
            for each, its_example in zip(tree, example, strict=True):
                self._note_arrays(each, its_example)

    def beside(self, number: int) -> set[int]:
        """The values in the same memory, this one included."""
        return self._members[self._group[number]]

    def join(self, one: int, other: int) -> None:
        """Let the memory of one value be that of another."""
        mine, others = self.beside(one), self.beside(other)
        if mine is not others:
            mine |= others
            for number in others:
                self._group[number] = self._group[one]
            self._members[self._group[one]] = mine

    def is_used_after(self, number: int, position: int) -> bool:
        """Whether a value is handed out, or an item behind `position` reads it."""
        return number in self._handed_out or self._read.get(number, [-1])[-1] > position

    def is_handed_out(self, number: int) -> bool:
        """Whether a value is among the program's results, or becomes a gradient: others may change it at any time."""
        return number in self._handed_out

    def changes_after(self, number: int, position: int) -> bool:
        """Whether an item behind `position` writes to the memory of a value, or might."""
        near = self.beside(number)
        was_there = not self.made.keys() >= near
        if any(self._written.get(each, -1) > position for each in near) or (was_there and self._changed > position):
            return True
        return self._outside > position and (was_there or not near.isdisjoint(self._handed_out))

    def is_same_window(self, one: int, other: int) -> bool:
        """Whether two arrays of values have the same elements in the same order of memory."""
        return _geometry(self.arrays[one]) == _geometry(self.arrays[other])

    def is_at_same_place(self, one: int, other: int) -> bool:
        """Whether two values are one array but for the object."""
        return self.is_same_window(one, other) and bounds(self.arrays[one]) == bounds(self.arrays[other])


def _geometry(array: Any) -> tuple[Any, ...]:
    return array.shape, array.strides, array.dtype


def _overlapping(arrays: dict[int, Any]) -> dict[int, int]:
    """For each value the group of those whose memory may be the same: it has the number of one of them."""
    groups = {number: number for number, array in arrays.items() if not array.size}
    reached, group = -1, -1
    for (low, high), number in sorted([(bounds(array), number) for number, array in arrays.items() if array.size]):
        if low >= reached:
            group = number
        groups[number] = group
        reached = max(reached, high)
    return groups


def renamed(item: Item, names: dict[int, Value]) -> Item:
    """An item that uses other values in the place of some."""
    if not names or not any(each.number in names for each in uses(item)):
        return item
    if isinstance(item, SetGrad):
        assert item.value is not None
        return replace(item, value=names[item.value.number])
    if isinstance(item, Read):
        return replace(item, call=replace(item.call, args=_renamed(item.call.args, names)))
    assert isinstance(item, Call)
    return replace(item, args=_renamed(item.args, names))


def with_names(item: Item, names: dict[int, Value]) -> Item:
    """An item that uses and makes other values in the place of some."""
    item = renamed(item, names)
    if not names or not isinstance(item, Call) or not any(each.number in names for each in values_in(item.results)):
        return item
    return replace(item, results=_renamed(item.results, names))


def _renamed(tree: Any, names: dict[int, Value]) -> Any:
    if type(tree) is Value:
        return names.get(tree.number, tree)
    return type(tree)([_renamed(each, names) for each in tree]) if type(tree) in (list, tuple) else tree


def same_value(one: Any, other: Any) -> bool:
    """Whether two arguments are the same value, or the same constant."""
    if type(one) is not type(other):
        return False
    if type(one) in (list, tuple):
        return len(one) == len(other) and all(map(same_value, one, other))
    if type(one) in (int, float, complex, str, bool):
        return repr(one) == repr(other)
    return one == other if type(one) in (Value, np.dtype) else one is other
