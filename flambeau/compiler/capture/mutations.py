"""What a call changes in Python: the containers and attributes that were there before, as it leaves them.

A program makes the same changes when its ops are done: nobody looks on in between. Which ones these are is found by
comparing shallow copies of everything that the walk over Python state has met.
"""

from __future__ import annotations

import operator
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType, ModuleType
from typing import Any

from ..._core.tensor import Tensor
from .names_read import CHANGING, Lines, lines_that_set
from .new_objects import attributes_of, is_container, is_known_by_parts, parts_of

_ABSENT = object()


@dataclass
class Change:
    """A container that a call has changed."""

    container: Any
    place: str
    """The expression that finds it."""
    is_given: bool
    """Whether it is found in the arguments alone."""
    before: Any
    after: Any
    """Shallow copies."""

    def is_of_items(self) -> bool:
        """Whether a dictionary has kept its keys, in their order, and has perhaps got further ones."""
        return isinstance(self.before, dict) and [*self.after][: len(self.before)] == [*self.before]


class Contents:
    """What containers hold when a call begins."""

    def __init__(self, containers: Iterable[tuple[Any, str, bool]]) -> None:
        self._before = [(each, place, is_given, _copy(each)) for each, place, is_given in containers]

    def changes(self) -> list[Change]:
        """The containers that hold something else now."""
        return [
            Change(container, place, is_given, before, container.copy())
            for container, place, is_given, before in self._before
            if (container or before) and not _is_same(container, before)
        ]


class Stored:
    """What lines that set something may have changed, by what they name."""

    def __init__(self) -> None:
        self._before: dict[int, Contents] = {}

    def note(self, frame: FrameType, named: Iterable[tuple[str, tuple[str, ...]]]) -> None:
        """Remember what a line that sets something may change: it is about to run."""
        for name, path in named:
            if not name:
                self._keep(frame.f_globals)
            value = frame.f_locals.get(name, frame.f_globals.get(name))
            for attribute in path:
                own = self._keep(value)
                if own is None or attribute not in own:
                    break
                value = own[attribute]
            else:
                self._keep(value)

    def _keep(self, value: Any) -> dict[str, Any] | None:
        """Remember what an object holds; its attributes, if they lie in a dictionary of its own."""
        try:
            own = None if isinstance(value, ModuleType) else object.__getattribute__(value, "__dict__")
        except AttributeError:
            own = None
        for each in (own, value):
            if type(each) in (dict, list, set, deque) and id(each) not in self._before:
                self._before[id(each)] = Contents([(each, "", False)])
        return own if type(own) is dict else None

    def changes(self) -> list[Change]:
        """What holds something else now."""
        return [change for each in self._before.values() for change in each.changes()]


class Changing:
    """Tells, while it is entered, whether containers that a call has changed go on changing: a counter goes up, or a
    list grows. What is made in the first calls alone, an attribute or the items of an empty list, does not count.
    """

    def __init__(self, changes: Iterable[Change]) -> None:
        self.changes = [each for each in changes if not each.is_given and _goes_on(each.before, each.after)]
        self._before = Contents(())
        self.has_run = False

    @property
    def is_likely(self) -> bool:
        """Whether the changes are such that the next call may make them, too."""
        return bool(self.changes)

    def __enter__(self) -> Changing:
        self._before = Contents([(each.container, each.place, False) for each in self.changes])
        return self

    def __exit__(self, *exception: object) -> None:
        self.has_run = any(_goes_on(each.before, each.after) for each in self._before.changes())
        self._before = Contents(())


def _goes_on(before: Any, after: Any) -> bool:
    """Whether a container has got longer that was not empty, or has another number under one of its keys."""
    if not isinstance(before, dict):
        return 0 < len(before) < len(after)
    pairs = [(value, after[key]) for key, value in before.items() if key in after]
    return any(type(one) in (int, float) and type(one) is type(other) and one != other for one, other in pairs)


def in_words(changes: Iterable[Change], ran: Iterable[tuple[CodeType, Lines]]) -> str:
    """What a call has changed, and in which line, as the end of a sentence; empty if there is nothing to say.

    Two calls that change the same have the same words: values are left out.
    """
    change = next((each for each in changes if not each.is_given), None)
    if change is None:
        return ""
    if isinstance(change.before, dict):
        key = next((each for each in {**change.before, **change.after} if _is_other(change, each)), "")
        names, what = {str(key)}, f"{key!r} gets another value"
    else:
        names, what = set(CHANGING), f"a {type(change.before).__name__} gets other items"
    places = {place for code, lines in ran for place in lines_that_set(code, lines, frozenset(names))}
    return f": {what}{f' ({places.pop()})' if len(places) == 1 else ''}"


def _is_other(change: Change, key: Any) -> bool:
    return change.before.get(key, _ABSENT) is not change.after.get(key, _ABSENT)


_EMPTY: dict[type, Any] = {kind: kind() for kind in (dict, list, set, OrderedDict)}


def _copy(container: Any) -> Any:
    """A shallow copy, which nobody changes: those of empty containers, of which every module has a dozen, are one."""
    found = None if container else _EMPTY.get(type(container))
    return container.copy() if found is None else found


def _is_same(one: Any, other: Any) -> bool:
    if len(one) != len(other) or not all(map(operator.is_, one, other)):
        return False
    return not isinstance(one, dict) or all(map(operator.is_, one.values(), other.values()))


def put_back(changes: Iterable[Change]) -> None:
    """Let containers hold what they held before the call."""
    for each in changes:
        _put(each.container, each.before)


@contextmanager
def undone(changes: Sequence[Change]) -> Iterator[None]:
    """A context in which containers hold what they held before the call."""
    try:
        put_back(changes)
        yield
    finally:
        for each in changes:
            _put(each.container, each.after)


def _put(container: Any, content: Any) -> None:
    container.clear()
    if isinstance(container, (list, deque)):
        container.extend(content)
    else:
        container.update(content)


def outside_caches(changes: Iterable[Change], given: Any) -> list[Change]:
    """The changes of a call but for those of objects in its arguments that hold tensors, such as the layers of a cache.

    Each generation brings a new cache. It counts the tokens that it has seen, and the counts are those of the
    generation before: they are sizes, as the shapes of its tensors are. A counter anywhere else has another number in
    every call.
    """
    found = list(changes)
    held = _attributes_beside_tensors(given) if found else set()
    return [each for each in found if id(each.container) not in held]


def _attributes_beside_tensors(given: Any) -> set[int]:
    """The identities of the dictionaries of attributes, among arguments, that have tensors in them."""
    found: set[int] = set()
    done: dict[int, Any] = {}
    waiting = [given]
    while waiting:
        value = waiting.pop()
        if id(value) in done or isinstance(value, Tensor) or not (is_container(value) or is_known_by_parts(value)):
            continue
        done[id(value)] = value
        own = attributes_of(value)
        if own is not None and any(isinstance(each, Tensor) for each in own.values()):
            found.add(id(own))
        waiting += parts_of(value)
    return found
