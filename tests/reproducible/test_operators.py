"""A tenth of PyTorch's operator database at each level of `flambeau.reproducible`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .operators import CHECKS, chosen

_HELD: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("held.json").read_text(encoding="utf-8"))
"""What the survey found: the lists under "differ" only shrink."""


@pytest.mark.parametrize("level", CHECKS)
@pytest.mark.parametrize("entry", chosen()[5::10], ids=repr)
def test_entries_give_the_same_bits(entry: Any, level: str) -> None:
    found = CHECKS[level](entry)
    assert not found or entry.name in _HELD[level]["differ"], f"{entry.name}: {found}"


def test_the_table_lists_what_differs() -> None:
    assert set(_HELD) == set(CHECKS)
    assert {level: sorted(row["differ"]) for level, row in _HELD.items()} == {level: [] for level in CHECKS}
