"""Facts about Python's objects as a table that is looked at without Python: `_codegen/machine/identities.py`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...._codegen.machine.identities import (
    ABSENT,
    ATTRIBUTES_ARE,
    CLASS_IS,
    COUNT_IS,
    DICTIONARY,
    FACT,
    FIELD_IS,
    ITEM_IS,
    ITEM_IS_EMPTY,
    KEYS_ARE,
    all_hold,
)

NUMBERS = {
    "item is": ITEM_IS, "item is empty": ITEM_IS_EMPTY, "absent": ABSENT, "keys are": KEYS_ARE, "count is": COUNT_IS,
    "class is": CLASS_IS, "attributes are": ATTRIBUTES_ARE, "field is": FIELD_IS,
}  # fmt: skip


_ABOUT_OBJECTS = ("class is", "attributes are", "field is")
_HAS_VERSIONS = sys.implementation.name == "cpython" and sys.version_info < (3, 13)
"""Whether a dictionary's version stands behind the number of its items."""


class Table:
    """Facts, with what keeps alive the objects that they name by address."""

    def __init__(self, facts: Sequence[tuple[Any, ...]]) -> None:
        self._kept: list[Any] = list(facts)
        rows = [self._row(each) for each in facts if each[0] in _ABOUT_OBJECTS]
        objects, dictionaries = len(rows), []
        by_dictionary: dict[int, list[tuple[Any, ...]]] = {}
        for each in facts:
            if each[0] not in _ABOUT_OBJECTS:
                by_dictionary.setdefault(id(each[1]), []).append(each)
        for address, about in by_dictionary.items():
            about.sort(key=lambda each: each[0] == "item is empty")
            begin, empty = len(rows), sum([each[0] != "item is empty" for each in about])
            rows += map(self._row, about)
            dictionaries.append([address, 0, begin, begin + empty, len(rows)])
        table = np.array(rows, np.int64).reshape(-1, FACT)
        versions = np.array(dictionaries, np.int64).reshape(-1, DICTIONARY)
        self.hold: Callable[[], bool] = functools.partial(
            all_hold(_HAS_VERSIONS), table, True, False, objects, versions, len(versions)
        )
        """Whether all of them hold."""

    def _row(self, fact: tuple[Any, ...]) -> list[int]:
        kind, *parts = fact
        return [NUMBERS[kind], *self._numbers(kind, parts), 0, 0, 0][:FACT]

    def _numbers(self, kind: str, parts: list[Any]) -> list[int]:
        if kind == "count is":
            return [id(parts[0]), parts[1]]
        if kind == "field is":
            return [id(parts[0]), *parts[1:3]]
        if kind == "keys are":
            keys = np.array([id(each) for each in parts[1]], np.int64)
            self._kept.append(keys)
            return [id(parts[0]), len(keys), keys.__array_interface__["data"][0]]
        return list(map(id, parts))


def table_of(facts: Sequence[tuple[Any, ...]]) -> Table | None:
    """The table of facts; None: there are none, or other threads may change objects while it is looked at."""
    if not facts or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    return Table(facts)
