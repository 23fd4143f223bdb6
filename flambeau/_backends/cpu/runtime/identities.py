"""Facts about Python's objects as a table that is looked at without Python: `_codegen/machine/identities.py`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._codegen.machine.identities import (
    ABSENT,
    ATTRIBUTES_ARE,
    CLASS_IS,
    COUNT_IS,
    ITEM_IS,
    ITEM_IS_EMPTY,
    KEYS_ARE,
    all_hold,
)

NUMBERS = {
    "item is": ITEM_IS, "item is empty": ITEM_IS_EMPTY, "absent": ABSENT, "keys are": KEYS_ARE, "count is": COUNT_IS,
    "class is": CLASS_IS, "attributes are": ATTRIBUTES_ARE,
}  # fmt: skip


class Table:
    """Facts, with what keeps alive the objects that they name by address."""

    def __init__(self, facts: Sequence[tuple[Any, ...]]) -> None:
        self._kept: list[Any] = list(facts)
        rows = [[NUMBERS[kind], *self._numbers(kind, parts), 0, 0][:4] for kind, *parts in facts]
        self.rows = np.array(rows, np.int64)
        self.run = all_hold()
        """(rows, True, False, how many): whether all of them hold."""

    def _numbers(self, kind: str, parts: list[Any]) -> list[int]:
        if kind == "count is":
            return [id(parts[0]), parts[1]]
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
