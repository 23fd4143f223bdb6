"""Programs for all sizes in which what has one size is planned: what runs beside a cache that grows.

A program for all sizes is a list of ops. Most of the ops of a call that decodes one token have the same sizes whatever
the length of the cache is. Which ones is not guessed: each call with new sizes that was compared with the recorded one
tells which ops were given other numbers, or arrays of another shape. When some calls have, the others become
schedules. If a later call shows that one of these has other sizes after all, the program is written anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..._core.arrays.abstract import AbstractArray
from ..._core.storage import address_of
from ..._core.tensor import Tensor
from ..plan.segment import segments
from ..program.items import Call, Item, Rewritten, Value
from .outline import Outline, describe
from .sizes import SizedSource
from .source import Source

_LEAST_ROWS = 4
"""So many sizes tell which ops have one size."""
_MOST_PLANS = 4
"""After so many plans that turned out to be for some of the sizes nothing is planned any more."""


class PartlyPlannedSource(SizedSource):
    """Source in which the ops at some positions have the sizes of the recorded call in every call."""

    def __init__(self, constants: dict[str, Any], moving: set[int]) -> None:
        super().__init__(constants)
        self._moving = moving
        self._is_fixed = False

    def items(self, items: Sequence[Item], kept: Iterable[Value]) -> None:
        """Write items, with schedules in place of those that have one size."""
        staying = {each.number for each in kept}
        values = [Value(number) for number in staying]
        self._parts(segments(items, values, self._has_one_size), staying)

    def _has_one_size(self, item: Item) -> bool:
        return isinstance(item, Call) and item.position not in self._moving

    def expression(self, tree: Any) -> str:
        return Source.expression(self, tree) if self._is_fixed else super().expression(tree)

    def _call(self, call: Call) -> None:
        self._is_fixed = self._has_one_size(call)
        try:
            if self._is_fixed:
                Source._call(self, call)
            else:
                super()._call(call)
        finally:
            self._is_fixed = False


class Parts:
    """What the program of a family was written of, to be written anew."""

    def __init__(self, source: SizedSource, outline: Outline, unpacked: int) -> None:
        begin, end = source.span_of_items
        self._before = [line for at, line in enumerate(source.lines[:begin]) if at != unpacked]
        self._unpacked = unpacked
        self._behind = source.lines[end:]
        self._source, self._outline = source, outline
        self._items = [_without_memory(each) for each in outline.items]
        self._begin = source.spans[0][1] if source.spans else len(source.numbers)
        self._moving: set[int] = set()
        self._plans = 0
        self.kept: list[int] | None = None
        """Which numbers of a row the planned program takes; None: nothing is planned."""

    def moves(self, positions: set[int]) -> bool:
        """Take note of ops that have other sizes in some call; whether one of them was planned."""
        is_new = not positions <= self._moving
        self._moving |= positions
        return is_new and self.kept is not None

    def is_due(self, rows: int) -> bool:
        """Whether there are sizes enough to plan."""
        return self.kept is None and rows >= _LEAST_ROWS and self._plans < _MOST_PLANS

    def planned(self, table: Any) -> Callable[..., Any] | None:
        """The program with what has one size in schedules; None: there is nothing to gain."""
        self._plans += 1
        known = self._source
        source = PartlyPlannedSource(known.constants, self._moving)
        source.constants["TABLE"] = table
        source.numbers = known.numbers[: self._begin]
        source.items(self._items, self._outline.wanted)
        if not any(not isinstance(each, Call) for each in source.parts):
            self._plans = _MOST_PLANS
            return None
        moving = [span for span in known.spans if span[0] in self._moving]
        self.kept = [*range(self._begin), *[number for _, first, last in moving for number in range(first, last)]]
        written, lines = source.lines, [*self._before]
        source.resumable.begins = known.resumable.begins
        if source._effects is not None:
            source._effects += len(lines) + 1
        lines.insert(self._unpacked, source.unpacked())
        source.lines = [*lines, *written, *self._behind]
        source.checks, source.facts, source.known = known.checks, known.facts, known.known
        made: Callable[..., Any] = source.function("call", "args, kwargs")
        describe(made, source, self._items)
        source.parts.clear()
        return made


def _without_memory(item: Item) -> Item:
    """An item whose examples are what arrays look like, and hold none of them."""
    if not isinstance(item, Call):
        return item
    looks = {"examples": _abstract(item.examples), "made": _abstract(item.made)}
    if isinstance(item, Rewritten):
        return replace(item, **looks, instead_of=[replace(each, examples=(), made=None) for each in item.instead_of])
    return replace(item, **looks)


def _abstract(tree: Any) -> Any:
    if type(tree) in (tuple, list):
        return type(tree)([_abstract(each) for each in tree])
    if not isinstance(tree, Tensor) or type(tree._array) is not np.ndarray:
        return tree
    array = tree._array
    looks = AbstractArray(array.shape, array.strides, array.dtype, None, address_of(array))
    return Tensor._from_parts((looks, tree._kind, [0, None]))
