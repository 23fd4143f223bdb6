"""Lists, dictionaries and sets that a call reads, and which of them are one object.

A call that changes a container changes it under all of its names. So guards also compare which names stand for one
container, and, where two could be mistaken for each other, that no other one has become the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .mutations import Contents


@dataclass
class Container:
    """A container that the walk over Python state has met."""

    value: Any
    place: str
    """The expression that finds it."""
    is_given: bool
    """Whether it is found in the arguments alone."""
    is_fact: bool
    """Whether identity guards tell that it is the same object."""
    length: int

    def of(self, value: Any) -> Container:
        """Another container in its place."""
        return Container(value, self.place, self.is_given, self.is_fact, self.length)


class Containers:
    """All of them, in the order in which they were met."""

    def __init__(self) -> None:
        self._found: dict[int, Container] = {}

    def met(self, value: Any, place: str, is_given: bool, is_fact: bool) -> tuple[str, bool] | None:
        """Take note of a container; where it was met before, what tells that it is another one, and whether that is
        known where all identity guards hold.
        """
        known = self._found.get(id(value))
        if known is None:
            self._found[id(value)] = Container(value, place, is_given, is_fact, len(value))
            return None
        return None if place == known.place else (f"{place} is not {known.place}", is_fact and known.is_fact)

    def place_of(self, value: Any) -> str | None:
        """The expression that finds a container."""
        known = self._found.get(id(value))
        return None if known is None else known.place

    def contents(self) -> Contents:
        """What they hold now."""
        return Contents([(each.value, each.place, each.is_given) for each in self._found.values()])

    def exposed(self) -> list[Any]:
        """Containers that a call may change while another name reads them. The dictionary of keyword arguments is
        none: it is new in each call. Nor are empty dictionaries, of which every module has a dozen.
        """
        return [
            each.value
            for each in self._found.values()
            if each.place != "kwargs" and (each.is_given or each.length or isinstance(each.value, (list, set, deque)))
        ]

    def apart(self, some: Collection[Any], constant: Callable[[Any], str]) -> Iterator[tuple[str, bool]]:
        """What tells that one of `some` containers has become another one of all; and whether that is known where all
        identity guards hold.
        """
        asked = [self._found[id(each)] for each in some]
        for group in _alike(asked, self._found.values()):
            others = [each for each in group if each.is_fact]
            if len(group) == 1 or len(others) == len(group):
                continue
            if others:
                yield _differ([each.place for each in group]), True
                fixed = constant({id(each.value) for each in others})
                places = "".join([f"{each.place}, " for each in group if not each.is_fact])
                yield f"not {fixed}.isdisjoint([*map(id, ({places}))])", False
            if len(own := [each.place for each in group if not each.is_fact]) > 1:
                yield _differ(own), False


def _alike(asked: Iterable[Container], everything: Iterable[Container]) -> list[list[Container]]:
    """The containers that could be one of those asked for, in groups."""
    groups: dict[tuple[type, int], list[Container]] = {(type(each.value), each.length): [] for each in asked}
    for each in everything:
        found = groups.get((type(each.value), each.length))
        if found is not None:
            found.append(each)
    return list(groups.values())


def _differ(places: list[str]) -> str:
    return f"len({{*map(id, ({', '.join(places)},))}}) != {len(places)}"
