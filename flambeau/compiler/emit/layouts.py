"""Backward parts for gradients that arrive in other layouts than the recorded one, as those that `sum()` expands.

A product of matrices in another layout adds in another order. So a gradient is taken as it arrives: ops that are given
arrays in another layout than in the recorded call run one by one, as in the plain call. Schedules run the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.tensor import Tensor
from ..._ops.shape.view import _contiguous_clone, _unsafe_view, _view, viewed
from ..plan.segment import segments
from ..program.items import Call, Item, Rewritten, Value, uses, values_in
from ..program.lower import lowered
from .resume import one_by_one
from .source import Source

_MOST = 8
"""For so many layouts there is a function; for others all ops run one by one."""

Backward = Callable[..., Any]


class Layouts:
    """The backward part of a program as functions of gradients in other layouts."""

    def __init__(self, items: Sequence[Item], results: Sequence[Value | None], parameters: Sequence[str]) -> None:
        self._items = in_any_layout(items, results)
        self._plain = dict(zip(map(id, self._items), items, strict=True))
        self._results, self._parameters = list(results), list(parameters)
        self._known: dict[tuple[Any, ...], Backward] = {}

    def run(self, arriving: Sequence[Any], rest: Sequence[Any]) -> Sequence[Any] | None:
        """The gradients of the inputs, of arriving ones in another layout; None: they have to be copied first."""
        layout = tuple([each.strides for each in arriving])
        known = self._known.get(layout)
        if known is not None:
            found: Sequence[Any] = known(*arriving, *rest)
            return found
        if len(self._known) >= _MOST:
            return self.one_by_one(arriving, rest)
        if not all(isinstance(each, Call) for each in self._items):
            return None
        values = {int(name[1:]): each for name, each in zip(self._parameters, [*arriving, *rest], strict=False)}
        others = self._in_other_layouts(values, len(arriving))
        self._known[layout] = self._planned(others)
        return [None if each is None else values[each.number] for each in self._results]

    def one_by_one(self, arriving: Sequence[Any], rest: Sequence[Any]) -> Sequence[Any] | None:
        """Run the part call by call, with nothing planned: where there are many layouts, or planning fails."""
        calls = [each for each in self._items if isinstance(each, Call)]
        if len(calls) < len(self._items):
            return None
        values = {int(name[1:]): each for name, each in zip(self._parameters, [*arriving, *rest], strict=False)}
        one_by_one(calls, values)
        return [None if each is None else values[each.number] for each in self._results]

    def _in_other_layouts(self, values: dict[int, Any], count: int) -> set[int]:
        """Run the items on arrays, which are kept by number; those which were given, or made, other layouts."""
        differing = {number for number, each in [*values.items()][:count] if not each.flags.c_contiguous}
        found: set[int] = set()
        for item in self._items:
            assert isinstance(item, Call)
            made = lowered(item)(*[_filled(each, values) for each in item.args])
            if not differing.isdisjoint([each.number for each in uses(item)]):
                found.add(id(item))
            for value, array, example in _pairs(item.results, made, item.made):
                values[value.number] = array = np.asarray(array)
                if array.strides != example._array.strides:
                    differing.add(value.number)
                    found.add(id(item))
        return found

    def _planned(self, others: set[int]) -> Backward:
        """The function in which these items run one by one."""
        source = Source()
        wanted = [each for each in self._results if each is not None]
        items = [each if id(each) in others else self._plain[id(each)] for each in self._items]
        source.planned(segments(items, wanted, lambda item: id(item) not in others), wanted)
        source.parts.clear()
        texts = ["None" if each is None else f"v{each.number}" for each in self._results]
        source.lines.append(f"return [{', '.join(texts)}]")
        function: Backward = source.function("backward", ", ".join(self._parameters))
        return function


def in_any_layout(items: Sequence[Item], results: Sequence[Value | None]) -> list[Item]:
    """Items that take arrays in another layout: `reshape` was recorded as a view, or as a copy and a view of that."""
    for_views = _copies_for_views(items) - set(map(_number, results))
    return [_in_any_layout(each, for_views) if isinstance(each, Call) else each for each in items]


def _in_any_layout(call: Call, for_views: set[int]) -> Call:
    if call.op is _view or (call.op is _unsafe_view and _number(call.args[0]) in for_views):
        return Rewritten(**{**vars(call), "run": _reshaped})
    return Rewritten(**{**vars(call), "run": _itself}) if _number(call.results) in for_views else call


def _copies_for_views(items: Sequence[Item]) -> set[int]:
    """The copies that are there to be looked at in another shape, by the numbers of their values."""
    used = Counter([value.number for each in items for value in uses(each)])
    views = {_number(each.args[0]) for each in items if isinstance(each, Call) and each.op is _unsafe_view}
    made = [_number(each.results) for each in items if isinstance(each, Call) and each.op is _contiguous_clone]
    return {each for each in made if each in views and used[each] == 1}


def _number(tree: Any) -> int:
    return tree.number if type(tree) is Value else -1


def _itself(array: Any) -> Any:
    return array


def _reshaped(array: Any, size: tuple[int, ...]) -> Any:
    found = viewed(array, size)
    return array.reshape(size) if found is None else found


def _filled(tree: Any, values: dict[int, Any]) -> Any:
    """Arguments with arrays in the place of values."""
    if type(tree) is Value:
        return values[tree.number]
    if type(tree) in (list, tuple) and any(values_in(tree)):
        return type(tree)([_filled(each, values) for each in tree])
    return tree


def _pairs(results: Any, made: Any, examples: Any) -> list[tuple[Value, Any, Tensor]]:
    """The values that an op gives, with what they are and what they were."""
    if type(results) is Value:
        return [(results, made, examples)]
    if type(results) is not list:
        return []
    return [each for each in zip(results, made, examples, strict=True) if type(each[0]) is Value]
