"""Where the arrays of a call lie beside each other, in numbers that mean the same in another call."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core.arrays.abstract import AbstractArray
from ..capture.abstract_arrays import owner_of
from ..program.reads import bounds

Place = tuple[int, int] | None
"""Where the elements of an array begin and end; None: it has none."""

_GAP = 64
_GIVEN, _OTHERS, _MADE = 0, 1 << 61, 1 << 62
"""Where the ranges begin of memory that was there before, of memory that is no array's, and of arrays that the call
makes. `AbstractArray`s lie behind the last, in the order in which their memory was made."""


class Places:
    """Gives each piece of memory a range of numbers, in the order in which pieces are met."""

    def __init__(self, given: Sequence[Any]) -> None:
        self._ranges: dict[int, tuple[int, int | None]] = {}
        """Where the range of a piece of memory begins, and its address if that is known, by the owner's identity."""
        self._alive: dict[int, Any] = {}
        """What tells that an owner is gone, or the owner itself."""
        self._next = _GIVEN
        self._of_others, self._of_made = _OTHERS, _MADE
        for each in given:
            owner = owner_of(each)
            if each.size and id(owner) not in self._ranges:
                self._next = self._begin(owner, each, self._next)

    def of(self, array: Any) -> Place:
        """The addresses at which an array begins and ends."""
        if not array.size:
            return None
        if type(array) is AbstractArray:
            return bounds(array)
        if array.base is None and id(array) not in self._ranges and array.flags.owndata:
            begin = self._of_made
            self._of_made = self._note(array, begin, array.nbytes)
            return begin, begin + array.nbytes
        owner = owner_of(array)
        if id(owner) not in self._ranges:
            if type(owner) is np.ndarray and owner.flags.owndata:
                self._of_made = self._begin(owner, owner, self._of_made)
            else:
                self._of_others = self._begin(owner, array, self._of_others)
        low, high = bounds(array)
        distance = self._distance(owner)
        return low + distance, high + distance

    def _distance(self, owner: Any) -> int:
        """How far the range of memory is from its addresses; that of an array is asked for when there is a view."""
        begin, low = self._ranges[id(owner)]
        if low is None:
            low = bounds(owner)[0]
            self._ranges[id(owner)] = begin, low
        return begin - low

    def _begin(self, owner: Any, array: Any, begin: int) -> int:
        """Give memory a range that begins at a number; where the next one may begin."""
        is_array = type(owner) is np.ndarray and owner.size
        low, high = bounds(owner if is_array else array)
        end = self._note(owner, begin, high - low if is_array else _OTHERS >> 20)
        self._ranges[id(owner)] = begin, low
        return end

    def _note(self, owner: Any, begin: int, room: int) -> int:
        """Take note of who owns a range, as long as the owner is there; where the next one may begin."""
        key = id(owner)
        self._ranges[key] = begin, None
        try:
            self._alive[key] = weakref.ref(owner, lambda _: self._forget(key))
        except TypeError:
            self._alive[key] = owner
        return begin + (room // _GAP + 2) * _GAP

    def _forget(self, key: int) -> None:
        del self._ranges[key], self._alive[key]


def in_order(places: Sequence[Place]) -> list[Any]:
    """Places as positions among all beginnings and ends: equal for two calls whose arrays overlap in the same way."""
    ends = sorted({end for each in places if each is not None for end in each})
    position = {end: number for number, end in enumerate(ends)}
    return [None if each is None else (position[each[0]], position[each[1]]) for each in places]
