"""Facts about objects that are known by their identities: together they are enough for most checks of a call.

A check may allow more than the fact that stands for it: an equal number in place of the same one. So where a fact does
not hold, the checks themselves are made.
"""

from __future__ import annotations

import functools
import gc
from collections import OrderedDict
from collections.abc import Sequence
from types import FunctionType, MappingProxyType
from typing import Any

from ..._backends.tiers import generated
from .fields import field_of, items_of_set


class Item(str):
    """An expression for what a dictionary has under a key."""

    __slots__ = ("dictionary", "key")

    dictionary: dict[Any, Any]
    key: Any


class Field(str):
    """An expression for what an object has in its own memory."""

    __slots__ = ("offset", "owner", "word")

    owner: Any
    offset: int
    word: int


class Part(str):
    """An expression for what a tuple holds, which is the same as long as the tuple is."""

    __slots__ = ()


class Facts:
    """What is enough for the checks in some lines of a function."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, ...]] = []
        """Their kinds, and the objects that they are about."""
        self.lines: set[int] = set()
        """The positions of lines that need not run where all facts hold."""
        self._contents: dict[int, tuple[Any, dict[Any, Any] | None]] = {}

    @functools.cached_property
    def table(self) -> Any:
        """All of them as a table, made when they are complete; None: there is none."""
        family = generated("identities") if self.found else None
        return None if family is None else family.table_of(self.found)

    def all_hold(self) -> bool:
        """Whether all of them hold now, as far as a table tells."""
        table = self.table
        return table is not None and table.hold()

    def item(self, expression: str, dictionary: Any, key: Any) -> str:
        """An expression for what a dictionary has under a key; facts can be taken from it if that is possible."""
        content = self._content(dictionary)
        if content is None or not _is_plain_key(key):
            return expression
        made = Item(expression)
        made.dictionary, made.key = content, key
        return made

    def field(self, expression: str, owner: Any, name: str) -> str:
        """An expression for an attribute of a function or the like, which may have it in its own memory."""
        found = None if generated("identities") is None else field_of(owner, name)
        if found is None:
            return expression
        made = Field(expression)
        made.owner, (made.offset, made.word) = owner, found
        return made

    def inside(self, names: Sequence[str], container: Any) -> list[str]:
        """Expressions for the items of a container which is the same, or has the same keys, by the facts."""
        if isinstance(container, tuple):
            return list(map(Part, names))
        return [self.item(name, container, key) for name, key in zip(names, container, strict=True)]

    def is_object(self, expression: str, value: Any) -> bool:
        """Whether it is a fact now that an expression is an object."""
        if type(expression) is Part:
            return True
        if type(expression) is Field:
            return self._add("field is", expression.owner, expression.offset, expression.word, value)
        return type(expression) is Item and self._add("item is", expression.dictionary, expression.key, value)

    def is_container(self, expression: str, value: Any) -> bool:
        """Check that a tuple, a dictionary or another container has the same items, under the same keys."""
        if type(expression) is str:
            return False
        if isinstance(value, tuple):
            return self.is_object(expression, value) and (type(value) is tuple or self.is_of_class(value))
        if value or type(expression) is Field:
            return type(value) is dict and self.has_keys(value) and self.is_object(expression, value)
        if type(expression) is not Item or type(value) not in (dict, list, OrderedDict):
            return type(value) is set and self._is_empty_set(expression, value)
        return self._add("item is empty", expression.dictionary, expression.key, type(value))

    def _is_empty_set(self, expression: str, value: Any) -> bool:
        """Check that an object is the same set, still without items."""
        where = items_of_set() if type(expression) is Item and generated("identities") is not None else None
        if where is None:
            return False
        return self._add("field is", value, where, 0) and self.is_object(expression, value)

    def has_keys(self, dictionary: Any) -> bool:
        """Check that a dictionary has the same keys, in their order."""
        content = self._content(dictionary)
        return content is not None and self._add("keys are", content, list(content))

    def has_count(self, dictionary: Any) -> bool:
        """Check that a dictionary has as many items."""
        content = self._content(dictionary)
        return content is not None and self._add("count is", content, len(content))

    def is_absent(self, dictionary: Any, key: str) -> bool:
        """Check that a dictionary still lacks a key."""
        content = self._content(dictionary)
        return content is not None and self._add("absent", content, key)

    def is_of_class(self, value: Any) -> bool:
        """Check that an object has the same class."""
        return self._add("class is", value, type(value))

    def has_attributes_in(self, value: Any, dictionary: Any) -> bool:
        """Check that an object keeps its attributes in the same dictionary."""
        if not type(value).__dictoffset__:
            return False  # its class finds the dictionary in its own way, as `threading.local` does for each thread
        return type(dictionary) is dict and self._add("attributes are", value, dictionary)

    def _add(self, kind: str, *parts: Any) -> bool:
        self.found.append((kind, *parts))
        return True

    def _content(self, dictionary: Any) -> dict[str, Any] | None:
        """The dictionary itself, or the one behind a view on it; None: it may do more than to look up texts."""
        if id(dictionary) not in self._contents:
            content = gc.get_referents(dictionary)[0] if type(dictionary) is MappingProxyType else dictionary
            is_plain = type(content) is dict and all(map(_is_plain_key, content))
            self._contents[id(dictionary)] = dictionary, content if is_plain else None
        return self._contents[id(dictionary)][1]


def _is_plain_key(key: Any) -> bool:
    """Whether a key is a text, or a class or function found by its identity: no code of the user's runs for these."""
    kind = type(key)
    return kind in (str, FunctionType) or (
        issubclass(kind, type) and kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__
    )
