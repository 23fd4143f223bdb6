from __future__ import annotations

import pytest

from .census import described, lacking, listed


@pytest.fixture(scope="module")
def now() -> dict[str, list[str]]:
    return lacking()


@pytest.mark.parametrize("kind", ["parameters", "returns", "example"])
def test_docstrings_only_gain(now: dict[str, list[str]], kind: str) -> None:
    """Every new public callable is described; one that is described now leaves the list of those that are not."""
    known = set(listed()[kind])
    assert sorted(set(now[kind]) - known) == []
    assert sorted(known - set(now[kind])) == [], "now described: run python -m tests.reference --update"


def test_entries_of_parameters_are_found() -> None:
    doc = "Sum.\n\nArgs:\n    a (int): one.\n        More: words.\n    *b, c: two and three.\n\nReturns:\n    d: four\n"
    assert described(doc) == {"a", "b", "c"}
    assert described("Sum.") == set()
